#!/bin/bash
# B103: More GPUs than any node has.
#SBATCH --partition=ml
#SBATCH --gres=gpu:8

srun python train.py
