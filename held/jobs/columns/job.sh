#!/usr/bin/env bash
# One GPU, tree columns: several columns of packed edges as on CPU cores, in every way; then one column, whose groups lie closer than
# before, as on CPU cores.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
echo "== columns at $SECONDS s"
timeout 100 python -m pytest -m gpu -n 8 -vv -rf --tb=short -p no:benchmark -p no:cacheprovider \
  tests/engine/gpu/test_packed_columns.py 2>&1 | tee "$OUT/columns.txt" | tail -n 80
echo "== one column at $SECONDS s"
timeout 60 python -m pytest -m gpu -n 8 -vv -rf --tb=short -p no:benchmark -p no:cacheprovider \
  tests/engine/gpu/test_packed_edges.py tests/engine/gpu/test_packed_searches.py tests/engine/gpu/test_packed_walks.py \
  tests/engine/gpu/test_packed_lengths.py -k "SSSP or weights or records or lengths" 2>&1 | tee "$OUT/one.txt" | tail -n 40
echo "== speed at $SECONDS s"
timeout 60 python "$here/speed.py" "$OUT/columns.json" 2>&1 | tail -n 20
echo "== done at $SECONDS s"
echo "goals: all pass; sssp (one column) takes what main takes"
