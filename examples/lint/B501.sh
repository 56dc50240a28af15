#!/bin/bash
# B501: A step needs more CPUs than the job has.
#SBATCH --partition=ml
#SBATCH --nodes=2

srun --ntasks=4 ./solver
