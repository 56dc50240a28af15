#!/bin/bash
# B213: An option is given twice.
#SBATCH --nodes=2
#SBATCH --nodes=4

srun python train.py
