#!/usr/bin/env bash
# One GPU. Dense supersteps on small graphs before and after the patch. Wanted of cuGraph's speed 1.5, so whole ms at most:
# web-NotreDame personalised 3.7, HITS 3.8, Katz 0.32, eigenvector 4.5; cnr-2000 4.5, 4.1, 0.49, 5.0; PageRank 2.2, 2.7.
# kron-20 and kron-22 must not be slower (kron-22 goes over tiles, where nothing changes).
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support SIGPS_CACHE_DIR=/tmp/felt-cache
before=/tmp/felt-before-tail; rm -rf $before /tmp/felt-tail; mkdir -p $before; cp -r sigps apps scripts $before/
(cd $before && patch -s -R -p1 -f < $here/code.patch) || echo "THE PATCH DID NOT COME OFF"
run() { PYTHONPATH=$1 SIGPS_CACHE_DIR=/tmp/felt-cache-${1//\//-} timeout "$2" python $here/tail.py "${@:3}" 2>&1 | tee -a $OUT/tail.txt; }
graphs=web-NotreDame,cnr-2000,dblp-2010
timeout 60 python -m pytest -q -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_engine.py -x 2>&1 | tail -5
run $before 40 before $SIGPS_DATA $graphs
run $PWD 40 after $SIGPS_DATA $graphs
run $PWD 30 slices $SIGPS_DATA web-NotreDame,cnr-2000 SIGPS_FINE_ROWS=8
run $PWD 30 two-rows $SIGPS_DATA web-NotreDame,cnr-2000 SIGPS_FINE_ROWS=2
run $PWD 30 few-1 $SIGPS_DATA web-NotreDame,cnr-2000 SIGPS_FEW_TASKS=1
run $PWD 30 few-16 $SIGPS_DATA web-NotreDame,cnr-2000 SIGPS_FEW_TASKS=16
for shape in 256x3 256x2 1024x1; do run $PWD 20 hits-$shape $SIGPS_DATA web-NotreDame,cnr-2000 shape=$shape only=HITS; done
run $before 25 before $SIGPS_DATA kron-18,kron-20
run $PWD 25 after $SIGPS_DATA kron-18,kron-20
