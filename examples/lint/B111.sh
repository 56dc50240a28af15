#!/bin/bash
# B111: CUDA_VISIBLE_DEVICES is written by hand.
#SBATCH --gres=gpu:1

export CUDA_VISIBLE_DEVICES=0
python train.py
