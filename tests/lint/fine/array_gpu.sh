#!/bin/bash
#SBATCH --array=0-3
#SBATCH --mem=1G
#SBATCH -n1
#SBATCH --gres=gpu:1
#SBATCH -w gpu1
#SBATCH -o a%a

./probe a$SLURM_ARRAY_TASK_ID; sleep 1.5
