set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/warm.sh"
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
COMMIT=$(cat COMMIT)
WAYS="auto bulk rows"
warm kron-14 PageRank-run BFS WCC SSSP KCore
timeout 100 python scripts/bench/streaming_gpu.py --graphs kron-21 grid-500 ring-19 --programs PageRank-run BFS WCC SSSP KCore --kept 0 0.5 1 \
  --ways $WAYS --repeats 2 --commit "$COMMIT" --output "$OUT/streaming-gpu-cells.json"
