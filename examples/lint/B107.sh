#!/bin/bash
# B107: mpirun does not know --gpus-per-task.
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1

mpirun -np 4 ./solver
