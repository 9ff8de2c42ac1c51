export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 8 tests/engine/gpu/test_packed_searches.py tests/engine/gpu/test_packed_lengths.py tests/engine/gpu/test_resident.py tests/engine/gpu/test_packed_disks.py "tests/engine/gpu/test_packed_edges.py::test_runs_on_packed_edges_equal_cpu_cores" > $OUT/tests.txt 2>&1
grep -a FAILED $OUT/tests.txt; tail -20 $OUT/tests.txt
