#!/usr/bin/env bash
# Runs in the root of a checkout of main with held/stream-ranks.patch applied. Two and three ranks on one GPU: results.
set -u
export PYTHONPATH=$PWD CUDA_VISIBLE_DEVICES=0
run() { timeout "$1" python -m pytest -q -v -rf -p no:cacheprovider -m gpu "${@:2}" 2>&1 | tail -25; }
# Kernels are compiled beside each other first.
run 150 tests/engine/gpu/test_mpirun.py -k "stream_packed and 2-mpi" > "$OUT/two-mpi.txt" &
run 150 tests/engine/gpu/test_mpirun.py -k "stream_packed and 2-peer" > "$OUT/two-peer.txt" &
run 150 tests/engine/gpu/test_packed_edges.py -k "pages and WCC or pages and BFS" > "$OUT/one-rank.txt" &
wait
cat "$OUT"/two-mpi.txt "$OUT"/two-peer.txt "$OUT"/one-rank.txt
run 80 tests/engine/gpu/test_mpirun.py -k "stream_packed and 3" | tee "$OUT/three.txt"
