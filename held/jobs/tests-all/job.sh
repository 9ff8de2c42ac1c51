export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
# -vv, since the project's options have -q: names come as tests end, also where the time is over.
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 39 tests/job/test_live_gpus.py tests/engine/gpu/test_settled_pages.py tests/engine/gpu/test_packed_*.py tests/engine/gpu/test_keyed_messages.py tests/job tests/engine tests/apps tests/gas tests/graph tests/kernels tests/device tests/system tests/report tests/cli tests/serve --ignore=tests/engine/gpu/test_mpirun.py > $OUT/tests.txt 2>&1
grep -a FAILED $OUT/tests.txt; tail -40 $OUT/tests.txt
