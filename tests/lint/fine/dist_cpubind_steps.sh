#!/bin/bash
#SBATCH -N1
#SBATCH -n8
#SBATCH -w gpu1

srun -n2 ./probe a
srun -n2 --cpu-bind=cores ./probe b
srun -n2 --cpu-bind=none ./probe c
srun -n2 --cpu-bind=map_cpu:3,1 ./probe d
srun -n2 --cpu-bind=mask_cpu:0x3,0xc ./probe e
srun -n2 --cpu-bind=sockets ./probe f
srun -n2 --cpu-bind=rank ./probe g
srun -n8 ./probe h
srun -n2 -c4 ./probe i
srun -n3 -c2 ./probe j
srun -n1 --cpu-bind=verbose ./probe k
