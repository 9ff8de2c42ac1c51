#!/usr/bin/env bash
# One GPU, after `labels` has passed. Wanted: PageRank in double precision on kron-24 at most 1.6 ms; label spreading.
export PYTHONPATH=$PWD
here=$(cd "$(dirname "$0")" && pwd)
python "$here/link_ahead.py" 6 > "$OUT/links" 2>&1 &
timeout 145 python "$here/labels.py" 130 --few kron-24 2>&1 | tee "$OUT/labels-24"
