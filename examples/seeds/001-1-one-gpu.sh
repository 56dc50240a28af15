#!/bin/bash
# Document 001, first example: one task, one GPU, no step. Right.
#SBATCH --partition=gpu_partition
#SBATCH --gres=gpu:1
#SBATCH --ntasks-per-node=1
#SBATCH --nodes=1
#SBATCH --job-name=single_gpu_task

python my_gpu_program.py
