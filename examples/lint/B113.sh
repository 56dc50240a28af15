#!/bin/bash
# B113: --gpus is the total of the job, not of a node.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus=4

srun python train.py
