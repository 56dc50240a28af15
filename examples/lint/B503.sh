#!/bin/bash
# B503: Steps in the background run one after another.
#SBATCH --ntasks=4
#SBATCH --gres=gpu:4

for i in 1 2 3 4; do
  srun --ntasks=1 python train.py --fold $i &
done
wait
