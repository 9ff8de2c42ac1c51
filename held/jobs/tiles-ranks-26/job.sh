#!/usr/bin/env bash
# Two GPUs: kron-26 over tiles on one and on two; wanted: two at least 1.8 times one with tiles.
here=$(dirname "$0"); export PYTHONPATH=$PWD
M="mpirun --allow-run-as-root --oversubscribe"; $M -n 1 true 2>/dev/null || M=mpirun
timeout 100 $M -n 1 python $here/ab.py --scales 26 --precisions single --ways rows,tiles --repeats 2 --out $OUT/one26.json 2>&1
timeout 145 $M -n 2 python $here/ab.py --scales 26 --precisions single --repeats 2 --out $OUT/two26.json --against $OUT/one26.json 2>&1
