export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
timeout 100 python -m pytest -vv -rfE --tb=short -p no:cacheprovider -p no:benchmark -m gpu -n 6 tests/engine/gpu/test_placed_edges.py tests/engine/gpu/test_resident.py tests/engine/partition/test_order.py tests/engine/gpu/test_spilled_edges.py tests/engine/gpu/test_packed_edges.py tests/engine/gpu/test_packed_searches.py 2>&1 | tail -60
