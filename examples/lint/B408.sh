#!/bin/bash
# B408: --nnodes is not the number of launchers.
#SBATCH --nodes=2
#SBATCH --gres=gpu:4

srun torchrun --nnodes=4 --nproc-per-node=4 train.py
