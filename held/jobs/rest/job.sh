export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
T=tests/engine/gpu
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 14 $T/test_placed_edges.py $T/test_resident.py $T/test_spilled_edges.py $T/test_tiles.py $T/test_edge_states.py $T/test_lanes.py $T/test_messages.py > $OUT/tests.txt 2>&1
grep -a FAILED $OUT/tests.txt; tail -20 $OUT/tests.txt
