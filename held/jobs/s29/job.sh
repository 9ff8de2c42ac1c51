export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
commit=$(cat COMMIT); P=/tmp/packed
bench() { local seconds=$1 ranks=$2; shift 2; echo "== $ranks ranks: $* at $SECONDS"; timeout "$seconds" mpirun -n "$ranks" python scripts/bench/streaming_gpus.py --commit $commit --graphs $P --repeats 1 "$@" 2>&1 | tail -40; }
bench 125 4 --scales 25,29 --programs PageRank BFS --output $OUT/stream-4.json
bench 80 1 --scales 25,29 --programs PageRank BFS --output $OUT/stream-1.json
rm -rf $P
