#!/bin/bash
# Document 000, first example: --gres and srun. The document counts four GPUs.
#SBATCH --job-name=gres_test
#SBATCH --nodes=2
#SBATCH --gres=gpu:4
#SBATCH --time=00:10:00
#SBATCH --output=gres_test.out
#SBATCH --error=gres_test.err

srun -n 4 nvidia-smi
