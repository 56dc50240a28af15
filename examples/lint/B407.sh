#!/bin/bash
# B407: torchrun starts another number of processes than there are GPUs.
#SBATCH --gres=gpu:2

torchrun --nproc-per-node=4 train.py
