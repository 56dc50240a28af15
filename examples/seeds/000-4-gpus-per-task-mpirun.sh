#!/bin/bash
# Document 000 says in words that mpirun does not follow --gpus-per-task: here is that script.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=00:10:00

mpirun -np 4 ./gpu_aware_app
