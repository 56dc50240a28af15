#!/bin/bash
# Document 002, third example: sixteen tasks are held, and four processes run on the first node.
#SBATCH --ntasks=16
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --job-name=pytorch-multi-node-process-split

module load cuda/11.6
source "$HOME/venv/bin/activate"

python -m torch.distributed.launch --nproc_per_node=4 train.py
