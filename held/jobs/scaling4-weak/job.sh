#!/usr/bin/env bash
# Four GPUs: kron-25 on one, kron-26 on two, kron-27 on four; weak_efficiency is against kron-25 on one.
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
bench 60 1 --scales 25 --grid 0 --repeats 3 --output $OUT/weak-1.json
bench 80 2 --scales 26 --grid 0 --repeats 3 --weak $OUT/weak-1.json --output $OUT/weak-2.json
bench 115 4 --scales 27 --grid 0 --repeats 3 --weak $OUT/weak-1.json --output $OUT/weak-4.json
bash $here/plan.sh 25 1
bash $here/plan.sh 26 2
bash $here/plan.sh 27 4
