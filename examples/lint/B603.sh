#!/bin/bash
# B603: There is no such node, or not in this partition.
#SBATCH --nodelist=gpu9

srun ./solver
