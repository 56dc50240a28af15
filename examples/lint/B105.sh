#!/bin/bash
# B105: --gres counts on each node, not for the whole job.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:4

srun python train.py
