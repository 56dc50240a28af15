#!/bin/bash
# B502: srun refuses this step.
#SBATCH --gpus-per-node=4

srun --gres=gpu:1 ./solver
