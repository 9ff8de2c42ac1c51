#!/usr/bin/env bash
# One GPU: what the findings changed that only a GPU shows. Run from the root of the tree, OUT set.
set -u
python -m pytest -m gpu -n 8 -p no:benchmark -p no:cacheprovider -vv \
  tests/engine/gpu/test_resident.py \
  "tests/engine/gpu/test_packed_edges.py::test_runs_on_packed_edges_equal_cpu_cores" \
  tests/engine/gpu/test_packed_values.py \
  tests/engine/gpu/test_spilled_edges.py \
  >"$OUT/tests.log" 2>&1
echo "rc $?" >>"$OUT/tests.log"
tail -n 25 "$OUT/tests.log"
python "$(dirname "$0")/checks.py" >"$OUT/checks.log" 2>&1 || true
tail -n 25 "$OUT/checks.log"
