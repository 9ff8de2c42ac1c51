#!/usr/bin/env bash
# Runs in the root of a checkout of main; no patch. Writes result files to $OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/warm.sh"
export PYTHONPATH=$PWD:/tmp/site
COMMIT=$(cat COMMIT)
WAYS="auto bulk"
warm kron-14 BFS WCC
timeout 130 python scripts/bench/streaming_gpu.py --graphs kron-28 --programs BFS WCC --kept 0.125 --ways $WAYS \
  --repeats 2 --commit "$COMMIT" --output "$OUT/streaming-gpu-kron28.json" 2>&1 | tee "$OUT/kron28.txt"
echo "goals: PageRank of_link >= 0.85 (at most 340 ms a superstep), BFS auto_ms <= 60, WCC auto_ms <= 90, bulk_over_auto >= 5"
