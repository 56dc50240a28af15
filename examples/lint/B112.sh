#!/bin/bash
# B112: --exclusive alone shows no GPUs.
#SBATCH --partition=ml
#SBATCH --exclusive

srun python train.py
