#!/bin/bash
# B204: `# SBATCH` is a comment.
#SBATCH --time=10
# SBATCH --gres=gpu:4

srun python train.py
