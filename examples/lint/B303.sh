#!/bin/bash
# B303: Tasks are not shared out evenly.
#SBATCH --partition=ml
#SBATCH --ntasks=4
#SBATCH --nodes=2

srun ./solver
