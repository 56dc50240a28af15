#!/bin/bash
# B505: Each step inherits all the memory of the job.
#SBATCH --partition=ml
#SBATCH --ntasks=4
#SBATCH --mem=64G

for i in 1 2 3 4; do
  srun --exact --ntasks=1 ./solver $i &
done
wait
