#!/bin/bash
# B207: A value ends at an unquoted blank.
#SBATCH --job-name=my first job

srun python train.py
