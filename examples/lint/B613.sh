#!/bin/bash
# B613: So little memory is hardly meant.
#SBATCH --mem=64

srun ./solver
