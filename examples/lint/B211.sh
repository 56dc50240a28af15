#!/bin/bash
# B211: There is no such option.
#SBATCH --gpu-per-task=1

srun python train.py
