#!/bin/bash
# B411: A task's variable is expanded by the batch script.
#SBATCH --ntasks=4

srun python train.py --rank $SLURM_PROCID
