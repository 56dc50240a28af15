#!/bin/bash
# B601: There is no such partition.
#SBATCH --partition=mll

srun ./solver
