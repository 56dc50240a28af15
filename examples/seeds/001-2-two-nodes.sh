#!/bin/bash
# Document 001, second example. The document expects two GPUs on each node; there are four.
#SBATCH --partition=gpu_partition
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=2
#SBATCH --nodes=2
#SBATCH --job-name=multi_gpu_task

mpirun -np 4 my_mpi_program
