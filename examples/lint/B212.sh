#!/bin/bash
# B212: Variables are not expanded in directives.
#SBATCH --output=$HOME/train.out

srun python train.py
