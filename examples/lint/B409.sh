#!/bin/bash
# B409: MASTER_PORT is the same for every job.
#SBATCH --gres=gpu:1

export MASTER_PORT=29500
srun python train.py
