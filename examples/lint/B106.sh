#!/bin/bash
# B106: The program must choose its GPU.
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4

srun ./solver
