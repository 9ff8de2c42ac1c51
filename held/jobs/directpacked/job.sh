#!/usr/bin/env bash
# One GPU, tree directpacked_all: what is refused on main until a GPU has run it. Peers (program by program; stacks after
# 100 s), walks beside messages that are listed, and the app tests.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
echo "== 2 ranks by peer at $SECONDS s"
timeout 115 mpirun -n 2 python "$here/peers.py" "$(mktemp -d)" peer 2>&1 | tail -n 60
echo "== listed at $SECONDS s"
timeout 130 python -m pytest -m gpu -v -rf -p no:cacheprovider tests/engine/gpu/test_packed_walks.py -k "listed or matchings or (sorted and records)" 2>&1 | tail -n 40
echo "goals: all same, all pass; then the two refusals of sigps/engine/gpu/spec.py go"
