#!/bin/bash
# Document 002, second example: sixteen tasks are expected; --ntasks=4 makes it four, one a node.
#SBATCH --ntasks=4
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --job-name=pytorch-multi-gpu-data-parallel

module load cuda/11.6
source "$HOME/venv/bin/activate"

python -m torch.distributed.launch --nproc_per_node=4 train.py
