#!/usr/bin/env bash
# Runs in the root of a checkout of main with held/stream-ranks.patch and then held/stream-disk.patch applied.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD
store=${STREAM_STORE:-$PWD/.stream-disk}
timeout 100 python -m pytest -q -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_packed_*.py -k "test_pages_come_from_disk" \
  > "$OUT/tests.txt" 2>&1 &
timeout 80 python "$here/disk.py" draw "$store" 24 25
timeout 40 python "$here/disk.py" rate "$store/25" | tee "$OUT/rate.txt"
wait; tail -15 "$OUT/tests.txt"
# Tells who waits for whom: with all pages on the host, with half of them, and with a ring alone.
timeout 55 python "$here/disk.py" run "$store/24" | tee "$OUT/kron24.txt"
timeout 70 python "$here/disk.py" run "$store/25" | tee "$OUT/kron25.txt"
rm -rf "$store"
echo "goal: from disk at least 0.85 of what the disk reads"
