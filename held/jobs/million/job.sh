#!/usr/bin/env bash
# One GPU (an H200 for the figures of the issue). Tests of streams on a GPU on the branch; what the host does by parts;
# then where batches spend their time on the branch: rows ms (as in docs/measured.md), of it laid_by (checks on the
# host), send (pinned memory, launch, copies that are kept), h2d, device (edit_rows by events), and PHASES: ms of
# edit_rows between two barriers; and small batches on MAIN beside. MAIN's others: held/results/million/before.txt.
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; nproc
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
(SIGPS_CACHE_DIR=/tmp/cache timeout 42 python -m pytest -vv -n 14 -rfE --tb=short -p no:cacheprovider -p no:benchmark -m gpu tests/job/test_live_gpu.py tests/job/test_live_arrivals_gpu.py tests/job/test_live_measures_gpu.py > $OUT/tests.txt 2>&1)
grep -aE "FAILED|passed|failed" $OUT/tests.txt | tail -20; grep -ac PASSED $OUT/tests.txt
PYTHONPATH=$PWD:/tmp/site timeout 6 python $here/host.py 2>&1 | tee $OUT/host.txt
PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache-after timeout 28 python $here/phases.py after 22 21 2>&1 | tee $OUT/after.txt
cd $MAIN && PYTHONPATH=$MAIN:/tmp/site SIGPS_CACHE_DIR=/tmp/cache-before timeout 12 python $here/phases.py before 22 7 1 1000 2>&1 | grep -v PHASES | tee $OUT/small.txt
