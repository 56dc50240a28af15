#!/bin/bash
# B109: A step holds GPUs that none of its tasks sees.
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=1

srun --ntasks=1 --gres=gpu:2 python train.py
