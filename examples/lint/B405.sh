#!/bin/bash
# B405: mpirun -np does not fit the job.
#SBATCH --ntasks=4

mpirun -np 8 ./solver
