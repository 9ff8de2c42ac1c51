set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
COMMIT=$(cat COMMIT)
timeout 150 python scripts/bench/streaming_gpu.py --graphs kron-21 uniform-21 ring-21 --programs PageRank-run BFS WCC SSSP KCore --kept 0 0.5 1 \
  --ways auto rows bulk --repeats 2 --commit "$COMMIT" --output "$OUT/streaming-gpu-cells.json"
