#!/bin/bash
# B406: A job is submitted from inside a job.
#SBATCH --ntasks=1

salloc --ntasks=4 ./solver
