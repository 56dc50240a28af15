#!/bin/bash
# B402: A program without srun runs on the first node only.
#SBATCH --nodes=2
#SBATCH --gres=gpu:4

python train.py
