#!/bin/bash
# B506: Each step takes all the GPUs of the job.
#SBATCH --ntasks=4
#SBATCH --gres=gpu:4

for i in 1 2 3 4; do
  srun --exact --ntasks=1 python train.py --fold $i &
done
wait
