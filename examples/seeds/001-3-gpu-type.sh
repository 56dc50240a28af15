#!/bin/bash
# Document 001, third example: the type is spelled in a way that sbatch refuses.
#SBATCH --partition=gpu_partition
#SBATCH --gres=gpu:1:tesla:v100
#SBATCH --ntasks-per-node=1
#SBATCH --nodes=1
#SBATCH --job-name=specific_gpu_task
#SBATCH --constraint=tesla_v100

python my_gpu_program.py
