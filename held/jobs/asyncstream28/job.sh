#!/usr/bin/env bash
# SSSP on kron-28 with weights, an eighth of its pages on the device: by pages, and by supersteps (auto).
set -u
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
COMMIT=$(cat COMMIT)
timeout 175 python scripts/bench/streaming_gpu.py --graphs kron-28 --programs SSSP --kept 0.125 --ways pages auto \
  --repeats 2 --commit "$COMMIT" --output "$OUT/lengths-kron28.json" 2>&1 | tee "$OUT/kron28.txt"
echo "goal: pages at most 1.82 s (2.37 s by supersteps, 110 GB)"
