#!/usr/bin/env bash
# Two GPUs: tests on one of them and on both, then kron-22 and kron-24 in rows, tiles, and tiles with early shares.
here=$(dirname "$0"); export PYTHONPATH=$PWD:$PWD/tests/support
P="timeout 80 python -m pytest -v -rf -p no:cacheprovider -m gpu"
echo "== two ranks on one GPU"; CUDA_VISIBLE_DEVICES=0 $P tests/engine/gpu/test_mpirun.py -k "over_tiles and (peer or mpi)" 2>&1 | tail -25
echo "== threads, host transport"; timeout 35 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_tiles.py -k "ranks_pull or cpu_gives or to_the_bit" 2>&1 | tail -15
M="mpirun --allow-run-as-root --oversubscribe"; $M -n 1 true 2>/dev/null || M=mpirun
echo "== speed"
timeout 60 $M -n 1 python $here/ab.py --scales 22,24 --out $OUT/one.json 2>&1
timeout 90 $M -n 2 python $here/ab.py --scales 22,24 --out $OUT/two.json --against $OUT/one.json 2>&1
echo "== two ranks on two GPUs, as time is left"; timeout 60 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_mpirun.py -k "over_tiles and peer and 2" 2>&1 | tail -12
