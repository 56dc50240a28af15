#!/bin/bash
step() { n=$1; shift; srun "$@" sh -c "echo ${D-1.5} $n" & sleep 0.25; }
for i in $(seq 4); do step $i -n1 --exact; done; wait
nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )
head=${nodes[0]}; ip=$(srun -N1 -n1 -w "$head" hostname --ip-address)
if [[ $A == 1 && -n $B ]]; then srun a; elif [ -f x ]; then srun b; else srun c; fi
case $B in x*) srun d ;; *) srun e;; esac
for ((i=0; i<3; i++)); do srun f $((i*2)) & pids+=($!); done
wait ${pids[@]}
while read l; do srun g ${l%.*} {1..3}; done < list | tee log
cat <<EOF
it's $(not) a quote
EOF
eval "srun h" && bash -c 'srun i' || exit 1
