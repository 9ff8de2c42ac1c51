#!/usr/bin/env bash
# One GPU (an H200 for the figures of the issue): scripts/bench/updates.py, SSSP on kron-22, batches of 1, 1,000,
# 100,000 and 1,000,000, on the branch. Wanted: rows_ms of a million at most 2.5, of 1 and 1,000 0.3 and 0.4.
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache-bench
timeout 85 python scripts/bench/updates.py --device cuda --scale 22 --programs SSSP --repeats 4 --batches 1 1000 100000 1000000 --commit $(cat COMMIT 2>/dev/null || echo million) --output $OUT/updates.json 2>&1
