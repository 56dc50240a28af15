#!/bin/bash
# B104: Tasks of a node see the same GPUs and will use the same one.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:4

srun python train.py
