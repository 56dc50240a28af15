#!/bin/bash
# B206: `#sbatch` is a comment.
#SBATCH --time=10
#sbatch --gres=gpu:4

srun python train.py
