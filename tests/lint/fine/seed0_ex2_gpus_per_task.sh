#!/bin/bash
#SBATCH --job-name=gpus_per_task_test
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=00:10:00
#SBATCH --output=gpus_per_task_test.out
#SBATCH --error=gpus_per_task_test.err

./probe batch
srun ./probe
