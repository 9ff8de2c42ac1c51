#!/usr/bin/env bash
# Runs in the root of a checkout of the branch `folders` (stream-ranks and stream-disk are in it).
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site
store=${STREAM_STORE:-$PWD/.folders}
file=tests/engine/gpu/test_packed_*.py
gpu() { timeout 62 python -m pytest -v -rf -p no:cacheprovider -m gpu $file -k "$2" > "$OUT/tests-$1.txt" 2>&1; }
gpu directed-BFS "directed_graphs and BFS" &
gpu directed-SSSP "directed_graphs and SSSP" &
gpu directed-longest "directed_graphs and LongestPath" &
gpu listed-coreness "listed_messages and coreness" &
gpu listed-letters "listed_messages and letters" &
gpu listed-labels "listed_messages and labels" &
gpu combined "runs_on_packed_edges_equal_cpu_cores" &
wait
for found in "$OUT"/tests-*.txt; do echo "$(basename "$found"): $(tail -1 "$found")"; grep -h "^FAILED\|^E  " "$found" | head -6; done
timeout 22 python "$here/measure.py" directed "$store" 20 | tee "$OUT/directed.txt"
timeout 18 python "$here/measure.py" listed "$store" 20 | tee "$OUT/listed.txt"
timeout 18 python "$here/measure.py" folders "$store" 22 | tee "$OUT/folders.txt"
rm -rf "$store"
