#!/usr/bin/env bash
# One GPU. Values and walked rows on the host (in-memory graphs that do not fit); several columns of packed edges. Tests, then figures.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
for file in test_spilled_values test_packed_columns; do
  echo "== $file at $SECONDS s"
  timeout 60 python -m pytest tests/engine/gpu/$file.py -m gpu -v -rf --maxfail=3 -p no:cacheprovider > "$OUT/$file.txt" 2>&1
  grep -E "^E  |FAILED|ERROR|PASSED|passed|failed" "$OUT/$file.txt" | tail -40
done
echo "== figures at $SECONDS s"
timeout 45 python "$here/columns.py" 20 2>&1 | tee "$OUT/columns.txt"
echo "goals: all pass; a second column costs its bytes"
