#!/bin/bash
#SBATCH --mem=1G
#SBATCH -o 'a\\%j'

echo out; echo err >&2
