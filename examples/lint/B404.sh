#!/bin/bash
# B404: mpirun inside srun.
#SBATCH --ntasks=4

srun mpirun -np 4 ./solver
