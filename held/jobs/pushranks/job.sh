#!/usr/bin/env bash
# Two GPUs, peers; tree pushstaged, where programs that read a column of edges push by default, too. Figures first: BFS and
# SSSP on kron-25 with weights, all pages on hosts, on two ranks and one, then two by pulls ($MAIN: SSSP pulls there). Then
# SSSP and PageRank on two ranks equal CPU cores (BFS, WCC and KCore did: 40 runs, all the same; WCC took 13.2 ms, 17.8 on one).
here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tree=$PWD store=/tmp/pushranks/25
nvidia-smi --query-gpu=name --format=csv,noheader | head -2
go() { # LABEL ROOT RANKS PROGRAMS REPEATS [VERBOSE]
  ( cd $2 && PYTHONPATH=$2:$2/tests/support:/tmp/site timeout 75 mpirun -n $3 python $here/speed.py run $1 $store $4 $5 auto cuda $6 2>&1 | grep -v '^$' | tail -60 ) | tee -a $OUT/speed.txt
}
mkdir -p /tmp/pushranks/agree
timeout 40 python $here/speed.py draw $store 25
go after $tree 2 BFS,SSSP 3 verbose
go after $tree 1 BFS,SSSP 3
go before $MAIN 2 SSSP 3
timeout 70 mpirun -n 2 python $here/agree.py peer /tmp/pushranks/agree SSSP,PageRank 2>&1 | tee $OUT/agree.txt | tail -30
echo; echo "== summary"; tail -1 $OUT/agree.txt; grep -h ranks $OUT/speed.txt | sort -k5,5 -k3,3
rm -rf /tmp/pushranks
