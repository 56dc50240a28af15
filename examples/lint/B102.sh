#!/bin/bash
# B102: No node has GPUs of that type.
#SBATCH --gres=gpu:a1000:2

srun python train.py
