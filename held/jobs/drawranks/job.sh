#!/usr/bin/env bash
# Two GPUs. Wanted: kron-24 on two ranks drawn in about a second the first time and 0.2 after (18 s before), kron-26 in a
# few seconds (104), first run as before or better. The lines EQUAL? of before and after are the same but for the file.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support SIGPS_CACHE_DIR=/tmp/drawranks-cache
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
left() { echo $((${LIMIT:-118} - SECONDS)); }
capped() { local most=$1; shift; local now=$(left); [ $now -lt 4 ] && { echo "no time for: $*"; return; }
  timeout $((now < most ? now : most)) "$@" 2>&1; [ $? -eq 124 ] && echo "cut off: $*"; }
draw() { local which=$1 ranks=$2 scales=$3 most=$4 tree=$PWD; [ $which = before ] && tree=$MAIN
  PYTHONPATH=$tree capped $most mpirun -n $ranks python $here/draw.py $which $scales ${DEVICE:-cuda} | tee -a $OUT/draw.txt; }
nvidia-smi -L 2>/dev/null
echo "== tests"
capped 38 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/graph/generators/test_on_gpus.py \
  -k "ranks_of_mpirun and (2 or 3)" | tail -15
capped 12 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/graph/generators/test_drawn_store.py | tail -8
echo "== drawing"
draw after 2 ${SCALES:-24,25} 25
draw after 1 ${SCALES:-24,25} 12
draw before 1 ${SMALL:-24} 9
draw before 2 ${SMALL:-24} 40
draw after 2 ${LARGE:-26} 25
draw before 2 ${BEFORE_LARGE:-25} 60
echo "== equal: each graph and number of ranks once, unless before and after differ"
grep EQUAL $OUT/draw.txt | sort | uniq -c
echo "== table"; grep '^|' $OUT/draw.txt
