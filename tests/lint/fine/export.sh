#!/bin/bash
echo FOO=$FOO BAR=$BAR H=${HOME:+set} P=${PATH:+set} J=${SLURM_JOB_ID:+set}
srun -n1 sh -c 'echo FOO=$FOO BAR=$BAR H=${HOME:+set} P=${PATH:+set} J=${SLURM_JOB_ID:+set}'
