#!/usr/bin/env bash
# Two GPUs; what the first call did not come to (there: 66 batches of 2 ranks on two GPUs equal; kron-22 on two and on one).
# Tests of 2 ranks on one GPU and 3 on two ("66 batches followed" each), streams on one GPU (kernels moved to another file),
# grid-4000 on two and one, where the host's part of a batch goes, BFS (runs in full on two, and says so).
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/streamranks-cache
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
here=$(cd "$(dirname "$0")" && pwd)
commit=$(cat COMMIT 2>/dev/null || echo unknown)
both=${CUDA_VISIBLE_DEVICES:-0,1} one=${CUDA_VISIBLE_DEVICES%%,*}
script() { # GPUS RANKS TURN
  echo "== streams of $2 ranks on GPUs $1 at $SECONDS s"
  CUDA_VISIBLE_DEVICES=$1 timeout 60 mpirun -n "$2" python tests/support/gpu_rank_script.py streams peer "$3" 2>&1 | tail -15
}
bench() { # SECONDS RANKS NAME ...
  local seconds=$1 ranks=$2 name=$3; shift 3
  echo "== $ranks ranks: $* at $SECONDS s"
  timeout "$seconds" mpirun -n "$ranks" python scripts/bench/updates_on_gpus.py --commit $commit --repeats 7 \
    --output $OUT/$name-$ranks.json "$@" 2>&1 | tee -a $OUT/bench.txt
}
timeout 60 mpirun -n 2 python $here/where_host.py 22 2>&1 | tee $OUT/profile.txt | head -80
script $both 3 2
echo "== streams on one GPU at $SECONDS s"
timeout 50 python -m pytest -q -rf -p no:cacheprovider -m gpu tests/job/test_live_gpu.py -k "part_and_join or batches_on" 2>&1 | tail -15
bench 70 2 grid --scale 0 --grid 4000 --programs SSSP WCC
script ${one:-0} 2 1
bench 45 1 grid --scale 0 --grid 4000 --programs SSSP WCC
bench 45 2 bfs --scale 22 --grid 0 --programs BFS --batches 1
