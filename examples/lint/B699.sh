#!/bin/bash
# B699: The request is refused.
#SBATCH --nodes=5
#SBATCH --gres=gpu:a100:4

srun ./solver
