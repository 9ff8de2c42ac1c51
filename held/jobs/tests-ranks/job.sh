export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
P="timeout 140 python -m pytest -v -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu --durations=8"
$P -n 5 tests/engine/gpu/test_mpirun.py -k "(packed and 2) or (over_tiles and 2-0 and (peer or mpi)) or go_on_from_logs and peer" 2>&1 | tee $OUT/tests.txt | tail -100 < /dev/null
