#!/bin/bash
# B201: A directive after the first command is not seen.
#SBATCH --time=10
module load cuda
#SBATCH --gres=gpu:4

srun python train.py
