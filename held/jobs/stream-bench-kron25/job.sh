#!/usr/bin/env bash
# Runs in the root of a checkout of main; no patch. Writes result files to $OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/warm.sh"
export PYTHONPATH=$PWD
COMMIT=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
WAYS="auto bulk"
warm kron-14 PageRank BFS WCC SSSP
timeout 130 python scripts/bench/streaming_gpu.py --graphs kron-25 --programs PageRank BFS WCC SSSP --kept 0.125 0 0.5 \
  --ways $WAYS --repeats 3 --commit "$COMMIT" --output "$OUT/streaming-gpu-kron25.json" 2>&1 | tee "$OUT/kron25.txt"
# The same searches in unpacked rows, of which laying out takes most of the time.
timeout 80 python scripts/bench/streaming_gpu.py --graphs kron-24 --programs BFS SSSP --kept 0.125 \
  --ways auto bulk rows --repeats 3 --commit "$COMMIT" --output "$OUT/streaming-gpu-kron24-rows.json" 2>&1 | tee "$OUT/rows.txt"
