#!/bin/bash
# B202: Directives after `set` are not seen.
set -euo pipefail
#SBATCH --gres=gpu:4
#SBATCH --time=10

srun python train.py
