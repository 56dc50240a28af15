#!/bin/bash
# B210: The script has DOS line breaks.
srun ./solver
