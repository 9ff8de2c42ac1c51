export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
commit=$(cat COMMIT); S=/tmp/scaling; mkdir -p $S
timeout 100 mpirun -n 1 python scripts/bench/multi_gpu.py --commit $commit --scales 24,25,26,27 --repeats 3 --output $S/one.json 2>&1 | tail -40
cp $S/one.json $OUT/
