#!/usr/bin/env bash
# One GPU, an H200 if there is one. Runs in the root of a checkout of branch `evolvegpu`. Wanted: all tests pass, no line
# DIFFERENT, no error of the sanitizer; BFS on grid-4000 far below 51 ms a batch of 1,000, on kron-22 below 0.88; of
# Triangles batches of 100,000 near 0.2 ms (500 M updates/s), and anything below a full run.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=${SIGPS_CACHE_DIR:-/tmp/evolvegpu-cache}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
echo "== tests at $SECONDS"
timeout 75 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/job/test_live_arrivals_gpu.py tests/job/test_live_measures_gpu.py \
  tests/job/test_live_gpu.py -k "on_a_gpu" 2>&1 | tee "$OUT/tests.txt" | grep -v "^$" | tail -60 | cut -c1-160
echo "== small cases under the sanitizer at $SECONDS"
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
timeout 25 python "$here/small.py" 2>&1 | tee "$OUT/small.txt"
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck; do
    timeout 40 "$sanitizer" --tool $tool --print-limit 5 python "$here/small.py" 2>&1 | tee "$OUT/$tool.txt" | tail -12
  done
else echo "no compute-sanitizer"; fi
# tree label program graph seconds sizes...
batches() { local tree=$1; shift; (cd "$tree" && PYTHONPATH=$tree:/tmp/site timeout $(($4 + 8)) python "$here/batches.py" "$@" 2>&1 | tee -a "$OUT/batches.txt"); }
echo "== times at $SECONDS"
batches "$PWD" after BFS grid-4000 16 1 1000 100000
batches "$MAIN" before BFS grid-4000 14 1 1000
batches "$PWD" after BFS kron-22 16 1 1000 100000
batches "$MAIN" before BFS kron-22 14 1 1000 100000
batches "$PWD" after Triangles kron-22 16 1 1000 100000
batches "$MAIN" before Triangles kron-20 14 1000
batches "$PWD" after Triangles kron-20 12 1 1000 100000
echo "== table at $SECONDS"
grep '^|' "$OUT/batches.txt"
grep -c DIFFERENT "$OUT"/*.txt
