#!/usr/bin/env bash
# Tests; then SSSP along packed edges of kron-25, by supersteps (auto) and by pages; then PageRank as a contraction.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
COMMIT=$(cat COMMIT)
timeout 60 python -m pytest -m gpu -v -rf -p no:cacheprovider tests/engine/gpu/test_packed_lengths.py 2>&1 | tail -30
timeout 50 python scripts/bench/streaming_gpu.py --graphs kron-25 --programs SSSP --kept 0.125 --ways auto pages \
  --repeats 3 --commit "$COMMIT" --output "$OUT/lengths-kron-25.json" 2>&1 | tail -8
echo "the pages on the device once a sweep, for 16 times"
timeout 40 python "$here/rounds.py" 1 --graphs kron-25 --programs SSSP --kept 0.125 --ways pages --repeats 3 --commit "$COMMIT" \
  --output "$OUT/lengths-rounds-1.json" 2>&1 | tail -2
D=$GPU_DATA/plain
timeout 60 python scripts/bench/contractions_gpu.py $D/cnr-2000.txt:directed:6e-5:4096 $D/cnr-2000.txt:directed:6e-5:262144 \
  $D/web-NotreDame.txt:directed:3e-4:4096 rmat-20::1e-5:16384 --repeats 2 --commit "$COMMIT" \
  --output "$OUT/contractions-gpu.json" 2>&1 | tail -20
timeout 60 python -m pytest -m gpu -v -rf -p no:cacheprovider tests/engine/gpu/test_settled_pages.py -k "double and None" 2>&1 | tail -12
echo "goals: kron-25 pages at least 1.3 times faster than auto; without barriers at most half the megabytes on web graphs"
