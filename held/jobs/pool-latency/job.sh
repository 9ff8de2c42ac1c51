#!/usr/bin/env bash
# One GPU. Where the time of searches over 4 ms goes, beside KCore and PageRank on kron-22 and beside jobs on kron-24: by the
# rule before the patch (a run is short by the longest of late) and by that of the patch (by the median), in turn.
# Wanted: p99 at most 5 ms. The tables at the end of each part say which phase the slow ones spend more in than the median.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/scripts/bench:/tmp/site SIGPS_CACHE_DIR=/tmp/pool-cache
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
trace() { echo "==== rule: $1; ${*:3}"; timeout "$2" python $here/latency.py "$1" --device cuda "${@:3}" 2>&1 | tee -a $OUT/latency.txt; }
trace longest 55 --scale 22 --most 8
trace median 30 --scale 22 --most 8
trace longest 25 --scale 22 --most 3
trace median 25 --scale 22 --most 3
trace longest 35 --scale 22 --long-scale 24 --most 5
trace median 30 --scale 22 --long-scale 24 --most 5
echo "==== p50, p95, p99 by rule"; grep -E "^==|^phase|^asks for|^waits to|^prepares|^lease|^makes the|^submits|^is heard|^of runs|^garbage" $OUT/latency.txt
