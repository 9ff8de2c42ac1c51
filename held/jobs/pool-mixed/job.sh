#!/usr/bin/env bash
# One GPU. 64 mixed jobs on kron-22 one after another and in pools, then latencies and fairness by the repository's script.
# Wanted: `pool, lanes=never` 1.15 times, `pool` 1.6 times (1.13 and 1.85 at 505a835d), p99 at most 5 ms, Jain 0.95.
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/pool-cache
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
bench() { timeout "$1" python scripts/bench/pool.py --scale 22 --device cuda "${@:2}" 2>&1 | tee -a $OUT/pool.txt; }
bench 90 --only mixed --rounds 6 --switch-interval 0.0005 --output $OUT/mixed-half-ms.json
bench 60 --only mixed --rounds 4 --output $OUT/mixed-5-ms.json
bench 50 --only latencies --switch-interval 0.0005 --output $OUT/latencies.json
bench 30 --only fairness --seconds 8 --output $OUT/fairness.json
