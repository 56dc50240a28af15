#!/bin/bash
# B504: Nobody waits for the background.
#SBATCH --ntasks=2

srun --exact --ntasks=1 ./first &
srun --exact --ntasks=1 ./second &
