#!/bin/bash
# B203: An indented directive is a comment.
#SBATCH --time=10
  #SBATCH --gres=gpu:4

srun python train.py
