#!/usr/bin/env bash
# Runs in the root of a checkout of main; no patch. Writes result files to $OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/warm.sh"
export PYTHONPATH=$PWD
COMMIT=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
WAYS="auto bulk rows"
warm uniform-12 PageRank-run BFS WCC SSSP KCore
timeout 170 python scripts/bench/streaming_gpu.py --graphs uniform-20 --programs PageRank-run BFS WCC SSSP KCore --kept 0 0.5 1 \
  --ways $WAYS --repeats 3 --commit "$COMMIT" --output "$OUT/streaming-gpu-cells-uniform.json" 2>&1 | tee "$OUT/cells-uniform.txt"
echo "goal: auto_over_best <= 1.05 in every row"
grep -o '"auto_over_best": [0-9.]*' "$OUT/streaming-gpu-cells-uniform.json" | sort -k2 -n -r | head -5
