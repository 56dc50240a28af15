#!/bin/bash
# B299: The request is refused by the command.
#SBATCH --ntasks=many

srun python train.py
