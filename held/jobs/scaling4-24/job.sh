#!/usr/bin/env bash
# Four GPUs: kron-24, the path and grid-4000 on one, two and four of them. Wanted: barrier at most 4.4 us on four, halo at
# least 60 % of the peer bandwidth (share), BFS and WCC never slower than on fewer (times_faster >= 1).
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/scaling-cache
commit=$(cat COMMIT)
nvidia-smi -L; nvidia-smi topo -m 2>/dev/null | head -8
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
bench() {
  local seconds=$1 ranks=$2; shift 2
  echo "== $ranks ranks: $*"
  timeout "$seconds" mpirun -n "$ranks" python scripts/bench/multi_gpu.py --commit $commit "$@" 2>&1 | tail -30
}
bench 75 1 --scales 24 --output $OUT/multi-gpu-24-1.json
bench 75 2 --scales 24 --against $OUT/multi-gpu-24-1.json --output $OUT/multi-gpu-24-2.json
bench 75 4 --scales 24 --against $OUT/multi-gpu-24-1.json --output $OUT/multi-gpu-24-4.json
bench 40 4 --scales 24 --grid 0 --repeats 3 --against $OUT/multi-gpu-24-2.json
bash $here/plan.sh 24 1 2 4
