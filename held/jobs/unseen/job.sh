export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0"))
T=tests/engine/gpu
python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -p gpu_of_worker -m gpu -n 12 $T/test_packed_values.py $T/test_packed_walks.py $T/test_packed_edges.py $T/test_messages.py $T/test_direct_tables.py $T/test_wide_totals.py $T/test_edge_states.py $T/test_spilled_edges.py $T/test_placed_edges.py $T/test_indexed_edges.py $T/test_resident.py $T/test_packed_lists.py $T/test_packed_disks.py $T/test_faults.py > $OUT/tests.txt 2>&1
grep -a FAILED $OUT/tests.txt; tail -20 $OUT/tests.txt
