#!/bin/bash
#SBATCH --mem=1G
#SBATCH -n2
#SBATCH -o j_%j.out

srun -o st_%j.%s.%t sh -c 'echo $SLURM_PROCID'
srun -o all_%J echo x
