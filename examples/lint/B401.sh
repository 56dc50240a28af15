#!/bin/bash
# B401: A launcher without srun runs on the first node only.
#SBATCH --nodes=4
#SBATCH --gres=gpu:4

torchrun --nproc-per-node=4 train.py
