#!/bin/bash
# B304: One CPU for each GPU is little.
#SBATCH --gres=gpu:1

srun python train.py
