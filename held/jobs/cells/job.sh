set -u
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
COMMIT=$(cat COMMIT)
python scripts/bench/streaming_gpu.py --graphs grid-1200 --programs PageRank-run BFS WCC SSSP KCore --kept 0 1 --ways auto rows --repeats 3 --commit "$COMMIT" --output "$OUT/cells-grid.json"
python scripts/bench/streaming_gpu.py --graphs ring-21 uniform-21 kron-21 --programs BFS WCC --kept 0 0.5 1 --ways auto rows --repeats 5 --commit "$COMMIT" --output "$OUT/cells-others.json"
