#!/usr/bin/env bash
# Four GPUs: kron-27 on four, one and two, in this order: what has no time is the least needed.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/scaling-cache
commit=$(cat COMMIT)
nvidia-smi -L; nvidia-smi topo -m 2>/dev/null | head -8
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
bench() {
  local seconds=$1 ranks=$2; shift 2
  echo "== $ranks ranks: $*"
  timeout "$seconds" mpirun -n "$ranks" python scripts/bench/multi_gpu.py --commit $commit "$@" 2>&1 | tail -30
}
bench 110 4 --scales 27 --grid 0 --repeats 3 --output $OUT/multi-gpu-27-4.json
bench 150 1 --scales 27 --grid 0 --repeats 3 --output $OUT/multi-gpu-27-1.json
python - <<P
import json, os
found = {n: {(r["work"], r["graph"]): r["milliseconds"] for r in json.load(open(f"{os.environ['OUT']}/multi-gpu-27-{n}.json"))["rows"]} for n in (1, 4)}
for key, ms in found[1].items():
    if key in found[4]:
        print(*key, "one", ms, "four", found[4][key], "times faster", round(ms / found[4][key], 3))
P
bash $here/plan.sh 27 1 4
