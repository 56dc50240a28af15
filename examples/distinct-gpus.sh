#!/bin/bash
# Four ranks on two nodes, each with a GPU of its own.
#SBATCH --job-name=distinct-gpus
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=10

srun python train.py
