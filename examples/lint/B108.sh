#!/bin/bash
# B108: --gpus is not shared out evenly.
#SBATCH --nodes=2
#SBATCH --gpus=4

srun python train.py
