export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
commit=$(cat COMMIT); S=/tmp/scaling
timeout 80 mpirun -n 2 python scripts/bench/multi_gpu.py --commit $commit --scales 24,26,27 --repeats 3 --against $S/one.json --weak $S/one.json --output $OUT/two.json 2>&1 | tail -40
