#!/bin/bash
# Document 002, first example: the launcher line has no srun, so three of four nodes stay idle.
#SBATCH --ntasks=4
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --job-name=pytorch-single-gpu

module load cuda/11.6
source "$HOME/venv/bin/activate"

python -m torch.distributed.launch --nproc_per_node=1 train.py
