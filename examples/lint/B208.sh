#!/bin/bash
# B208: A value is cut short by #.
#SBATCH --job-name=run#3

srun python train.py
