#!/usr/bin/env bash
# Runs in the root of a checkout of main with held/evolve.patch applied, on one GPU: BFS in a stream on kron-22.
# Wanted: a full run after a batch at most 1.25 times sigps.run on the version laid out anew (3.3 before); a batch of
# one edge no dearer than before.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support
timeout 90 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/job/test_live_gpu.py 2>&1 | tail -25 | tee "$OUT/tests.txt"
timeout 150 python "$here/order.py" 22 2>&1 | tee "$OUT/order.txt"
