#!/bin/bash
# B114: More shards than one GPU has.
#SBATCH --gres=shard:5

srun python infer.py
