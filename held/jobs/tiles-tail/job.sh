#!/usr/bin/env bash
# One GPU. Wanted: web-NotreDame PageRank 0.041 ms or less, nothing else slower. 4096 is what main does.
export PYTHONPATH=$PWD:$PWD/tests/support
timeout 60 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_engine.py -k "row or kind" 2>&1 | tail -15
timeout 180 python $(dirname "$0")/tail.py $SIGPS_DATA web-NotreDame dblp-2010 cnr-2000 kron-18 kron-20 kron-22 2>&1
