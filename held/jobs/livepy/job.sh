export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 12 tests/job/test_live_gpu.py tests/job/test_live_arrivals_gpu.py tests/job/test_live_measures_gpu.py > $OUT/tests.txt 2>&1
grep -a FAILED $OUT/tests.txt; tail -20 $OUT/tests.txt
