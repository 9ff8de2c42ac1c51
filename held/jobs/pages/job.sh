export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
python $(dirname "$0")/weighted.py
python scripts/bench/streaming_gpu.py --graphs uniform-21 ring-21 /tmp/j/cnr-2000-w.sigps /tmp/j/dblp-2010-w.sigps kron-24 --programs SSSP --kept 0.5 1 --ways auto supersteps --repeats 5 --commit "$(cat COMMIT)" --output $OUT/pages.json
