#!/usr/bin/env bash
# One GPU. Wanted: heat on kron-22 at least 2 times faster over tiles than over rows; HITS along arcs faster at all.
export PYTHONPATH=$PWD:$PWD/tests/support
timeout 100 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_tiles.py 2>&1 | tail -30
timeout 140 python $(dirname "$0")/columns.py 20 22 2>&1
