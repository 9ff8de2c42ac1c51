#!/usr/bin/env bash
# Four GPUs: equality on four ranks with a GPU each, by every way; a rank that is killed, and one that hangs, is named.
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
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
try() { local seconds=$1; shift; timeout "$seconds" python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_mpirun.py "$@" 2>&1 | grep -E "PASS|FAIL|ERROR|skip|passed|failed|E  " | tail -25; }
try 90 -k "interpreters_results and 4-peer"
try 60 -k "killed or does_not_come or slower"
try 100 -k "by_nccl and 4"
try 60 -k "edge_schedule or kept_on_edges or all_name"
