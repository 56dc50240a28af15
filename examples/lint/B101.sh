#!/bin/bash
# B101: A GPU request is misspelled.
#SBATCH --partition=gpu_partition
#SBATCH --gres=gpu:1:tesla:v100

srun python train.py
