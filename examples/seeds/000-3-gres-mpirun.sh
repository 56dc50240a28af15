#!/bin/bash
# Document 000, third example: --gres and mpirun. Four ranks, and eight GPUs that all of them see.
#SBATCH --job-name=mpirun_test
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:4
#SBATCH --time=00:10:00
#SBATCH --output=mpirun_test.out
#SBATCH --error=mpirun_test.err

mpirun -np 4 ./gpu_aware_app
