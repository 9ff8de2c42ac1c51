#!/usr/bin/env bash
# One GPU. Core numbers before and after the patch, in turn. Wanted: the same answers (both sums), and host times over which
# cuGraph's (294, 427, 40, 202, 376, 1341 ms in the order kron-22, kron-24, USA-road-NE, web-NotreDame, cnr-2000,
# grid-4000) have a geometric mean of 12 or more (10.8 before).
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support SIGPS_CACHE_DIR=/tmp/felt-cache
before=/tmp/felt-before; rm -rf $before; mkdir -p $before; cp -r sigps apps scripts $before/
(cd $before && patch -s -R -p1 -f < $here/code.patch) || echo "THE PATCH DID NOT COME OFF"
run() { PYTHONPATH=$1 SIGPS_CACHE_DIR=/tmp/felt-cache-${1//\//-} timeout "$2" python $here/core.py "${@:3}" 2>&1 | tee -a $OUT/core.txt; }
small=web-NotreDame,cnr-2000,USA-road-NE,grid-4000
echo "== the small-frontier kernel and phases are right"
timeout 70 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_cluster.py tests/engine/gpu/test_master.py -x 2>&1 | tail -12
timeout 40 python -m pytest -q -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_apps.py -k "KCore" 2>&1 | tail -5
echo "== before, after"
run $before 50 before $SIGPS_DATA $small
run $PWD 50 after $SIGPS_DATA $small
run $before 45 before $SIGPS_DATA kron-22,kron-24
run $PWD 45 after $SIGPS_DATA kron-22,kron-24
echo "== parts of it"
run $PWD 30 narrow $SIGPS_DATA web-NotreDame,kron-22 narrow
run $PWD 30 few $SIGPS_DATA grid-4000 few
run $PWD 30 apart $SIGPS_DATA USA-road-NE,grid-4000 apart
