export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
timeout 45 mpirun -n 4 python scripts/bench/multi_gpu.py --commit $(cat COMMIT) --scales 26 --grid 0 --only BFS WCC --repeats 5 --output $OUT/b4.json 2>&1 | tail -20
