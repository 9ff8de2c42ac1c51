#!/usr/bin/env bash
# Two GPUs. Streams go on among ranks that meet within launches (one collective and one reading a batch): the same
# results, and the time of a batch beside $MAIN's and one GPU's.
export SIGPS_CACHE_DIR=/tmp/livegpus-cache
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
here=$(cd "$(dirname "$0")" && pwd)
commit=$(cat COMMIT 2>/dev/null || echo unknown)
both=${CUDA_VISIBLE_DEVICES:-0,1} one=${CUDA_VISIBLE_DEVICES%%,*}
of_this="$PWD:$PWD/tests/support:/tmp/site" of_main="$MAIN:$MAIN/tests/support:/tmp/site"
export PYTHONPATH=$of_this
script() { # SECONDS GPUS RANKS TURN
  echo "== streams of $3 ranks on GPUs $2 at $SECONDS s"
  CUDA_VISIBLE_DEVICES=$2 timeout "$1" mpirun -n "$3" python tests/support/gpu_rank_script.py streams peer "$4" 2>&1 | tail -15
}
bench() { # FOLDER SECONDS RANKS NAME ...
  local folder=$1 seconds=$2 ranks=$3 name=$4; shift 4
  echo "== $name, $ranks ranks: $* at $SECONDS s"
  (cd "$folder" && PYTHONPATH="$folder:$folder/tests/support:/tmp/site" timeout "$seconds" mpirun -n "$ranks" \
    python scripts/bench/updates_on_gpus.py --commit $commit --repeats 15 --output $OUT/$name-$ranks.json "$@" 2>&1 \
    | sed "s/^work/$name work/" | tee -a $OUT/bench.txt)
}
profile() { # FOLDER NAME
  echo "== profile $2 at $SECONDS s"
  (cd "$1" && PYTHONPATH="$1:$1/tests/support:/tmp/site" timeout 40 mpirun -n 2 python $here/where_host.py 22 2>&1 \
    | tee $OUT/profile-$2.txt | cut -c1-110 | head -60)
}
kron="--scale 22 --grid 0 --programs SSSP WCC"
echo "== streams on one GPU at $SECONDS s"
CUDA_VISIBLE_DEVICES=${one:-0} timeout 80 python -m pytest -q -rf -p no:cacheprovider -n 8 -m gpu tests/job/test_live_gpu.py \
  tests/job/test_live_arrivals_gpu.py 2>&1 | tail -12
script 60 $both 3 2
bench $PWD 40 2 after $kron BFS
bench $PWD 40 1 after $kron BFS
bench $MAIN 40 2 before $kron
python $here/table.py $OUT/bench.txt 2>&1 | tee $OUT/table.txt
bench $PWD 40 2 mesh --scale 0 --grid 4000 --programs BFS
script 50 ${one:-0} 2 1
profile $PWD after
python $here/table.py $OUT/bench.txt 2>&1 | tee $OUT/table.txt
