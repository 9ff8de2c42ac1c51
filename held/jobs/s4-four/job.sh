export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
commit=$(cat COMMIT); S=/tmp/scaling; mkdir -p $S; cp /tmp/one.json $S/one.json
timeout 85 mpirun -n 4 python scripts/bench/multi_gpu.py --commit $commit --scales 24,26,27 --repeats 3 --against $S/one.json --weak $S/one.json --output $OUT/four.json 2>&1 | tail -40
