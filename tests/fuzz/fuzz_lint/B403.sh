#!/bin/bash
# B403: srun multiplies torchrun.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4

srun torchrun --nnodes=2 --nproc-per-node=4 train.py
