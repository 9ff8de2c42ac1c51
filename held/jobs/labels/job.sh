#!/usr/bin/env bash
# One GPU. Wanted: label spreading of 4 numbers on kron-22 at least 2 times faster over tiles than over rows.
export PYTHONPATH=$PWD:$PWD/tests/support
here=$(cd "$(dirname "$0")" && pwd)
python "$here/link_ahead.py" 6 > "$OUT/links" 2>&1 &
timeout 70 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_tiles.py 2>&1 | tail -60 | cut -c1-200
echo "after $SECONDS s"; tail -12 "$OUT/links"
left=$((145 - SECONDS))
timeout $left python "$here/labels.py" $((left - 8)) kron-22 2>&1 | tee "$OUT/labels"
