export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 8 tests/engine/gpu/test_mpirun.py > $OUT/tests.txt 2>&1
tail -60 $OUT/tests.txt
