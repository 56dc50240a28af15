#!/bin/bash
# Document 003, the short form: what a step does not say, it inherits from the job. Right.
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:4
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --mem-per-cpu=1443
#SBATCH --partition=ml

for i in 1 2 3 4; do
  srun --exclusive --gres=gpu:1 --ntasks=1 some-gpu-application &
done
wait
