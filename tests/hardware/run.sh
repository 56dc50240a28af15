#!/bin/bash
# Everything that needs a real NVIDIA GPU, in one go: tests/hardware/run.sh [BIN [RESULTS]]
# As root, on a machine with an NVIDIA driver, cgroup v2 and a Python with PyTorch. BIN holds berth's
# programs (build/bin); RESULTS is a folder for the log and the machine's topology file.
cd "$(dirname "$0")/../.." || exit 1
exec "${PYTHON:-python3}" tests/hardware/on_gpu.py "${1:-build/bin}" "${2:-build/hardware}"
