#!/usr/bin/env bash
# Four GPUs: kron-26 on one, two and four.
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
bench 90 1 --scales 26 --grid 0 --repeats 3 --output $OUT/multi-gpu-26-1.json
bench 90 2 --scales 26 --grid 0 --repeats 3 --against $OUT/multi-gpu-26-1.json --output $OUT/multi-gpu-26-2.json
bench 90 4 --scales 26 --grid 0 --repeats 3 --against $OUT/multi-gpu-26-1.json --output $OUT/multi-gpu-26-4.json
bash $here/plan.sh 26 1 2 4
