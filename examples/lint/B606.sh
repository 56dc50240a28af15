#!/bin/bash
# B606: More memory than any node has.
#SBATCH --gres=gpu:4
#SBATCH --mem-per-gpu=32G

srun ./solver
