#!/bin/bash
# B410: MASTER_ADDR is each node itself.
#SBATCH --nodes=2

export MASTER_ADDR=localhost
srun python train.py
