#!/bin/bash
# B214: A dash is not a hyphen.
#SBATCH –nodes=2

srun python train.py
