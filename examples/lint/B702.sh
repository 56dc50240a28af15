#!/bin/bash
# B702: All elements of an array write to one file.
#SBATCH --array=1-10
#SBATCH --output=run.out

srun ./solver $SLURM_ARRAY_TASK_ID
