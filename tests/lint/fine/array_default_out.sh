#!/bin/bash
#SBATCH --array=1,3
#SBATCH --mem=1G

echo t$SLURM_ARRAY_TASK_ID
