here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site
commit=$(cat COMMIT)
nvidia-smi topo -m 2>/dev/null | head -8
bench() { local seconds=$1 ranks=$2; shift 2; echo "== $ranks ranks: $*"; timeout "$seconds" mpirun -n "$ranks" python scripts/bench/multi_gpu.py --commit $commit "$@" 2>&1 | tail -30; }
bench 40 1 --scales 24 --grid 0 --repeats 3 --output $OUT/multi-gpu-24-1.json
bench 60 4 --scales 24 --grid 0 --repeats 3 --against $OUT/multi-gpu-24-1.json --output $OUT/multi-gpu-24-4.json
bench 50 2 --scales 24 --grid 0 --repeats 3 --against $OUT/multi-gpu-24-1.json --output $OUT/multi-gpu-24-2.json
