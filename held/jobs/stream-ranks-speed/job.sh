#!/usr/bin/env bash
# Runs in the root of a checkout of main with held/stream-ranks.patch applied, on two GPUs: a superstep on one and on two.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD
mpirun=$(dirname "$(command -v python)")/mpirun; [ -x "$mpirun" ] || mpirun=mpirun
store=/tmp/stream-ranks
go() { # RANKS TRANSPORT STORE REPEATS
  timeout 60 "$mpirun" -n "$1" python "$here/speed.py" run "$store/$3" "$2" "$4" 2>&1 | grep -v "^$" | tail -12
}
timeout 60 python "$here/speed.py" draw "$store" 14 25 26
go 2 auto 14 1 > "$OUT/warm.txt" & go 1 auto 14 1 > "$OUT/warm1.txt" & wait
cat "$OUT/warm.txt"
for scale in 25 26; do
  for way in "1 auto" "2 auto" "2 nccl" "2 mpi"; do
    echo "== kron-$scale, ranks and transport: $way"
    go $way $scale 2 | tee -a "$OUT/speed.txt"
  done
done
echo "goal: 2 auto at least 1.7 times as fast as 1 auto in a superstep of PageRank"
