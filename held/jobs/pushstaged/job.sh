#!/usr/bin/env bash
# Two GPUs, NCCL. As pushranks by transport="nccl" on branch pushstaged: equal to CPU cores; then BFS, WCC and SSSP on
# kron-25 with weights on two ranks, $MAIN against this tree.
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tree=$PWD store=/tmp/pushstaged/25
nvidia-smi --query-gpu=name --format=csv,noheader | head -2
go() { # LABEL ROOT RANKS PROGRAMS REPEATS [VERBOSE]
  ( cd $2 && PYTHONPATH=$2:$2/tests/support:/tmp/site timeout 65 mpirun -n $3 python $here/speed.py run $1 $store $4 $5 nccl cuda $6 2>&1 | grep -v '^$' | tail -60 ) | tee -a $OUT/speed.txt
}
mkdir -p /tmp/pushstaged/agree
timeout 120 mpirun -n 2 python $here/agree.py nccl /tmp/pushstaged/agree BFS,WCC,SSSP 2>&1 | tee $OUT/agree.txt | tail -70
timeout 40 python $here/speed.py draw $store 25
go after $tree 2 BFS,WCC,SSSP 3 verbose
go before $MAIN 2 BFS,WCC,SSSP 3
echo; echo "== summary"; tail -1 $OUT/agree.txt; grep -h ranks $OUT/speed.txt | sort -k5,5 -k3,3
rm -rf /tmp/pushstaged
