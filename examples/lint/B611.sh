#!/bin/bash
# B611: The job takes all memory of a node and leaves GPUs that nobody can use.
#SBATCH --gres=gpu:1

srun python train.py
