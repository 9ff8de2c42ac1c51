#!/usr/bin/env bash
# Four GPUs, a GPU for each of four ranks: the rank scripts of the tests, one after the other; a rank that is killed, and one that hangs, is named.
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
mkdir -p /tmp/s4
one() { # WORDS COMMAND TRANSPORT ARGUMENT
  local words=$1 name=$2-$3-$(basename "$4"); shift; local began=$SECONDS
  mkdir -p /tmp/s4; case "$3" in /*) mkdir -p $3;; esac
  timeout -k 3 60 mpirun -n 4 python tests/support/gpu_rank_script.py "$@" > $OUT/$name.txt 2>&1; local rc=$?
  if grep -q "$words" $OUT/$name.txt && [ $rc = 0 ]; then echo "PASS $name $((SECONDS-began)) s at $SECONDS"; else echo "FAIL $name rc $rc $((SECONDS-began)) s"; grep -v '^\[\|^$\|^---' $OUT/$name.txt | tail -5; fi
}
killed() {
  echo "== a rank that is killed: $1 at $SECONDS"
  timeout 40 mpirun -n 4 python tests/support/gpu_rank_script.py forever $1 "" > $OUT/killed-$1.txt 2>&1 &
  launcher=$!
  for i in $(seq 100); do grep -q ready $OUT/killed-$1.txt && break; sleep 0.2; done
  victim=$(pgrep -f "^[^ ]*python[0-9.]* tests/support/gpu_rank_script.py forever $1" | tail -1); echo "killing $victim"; began=$SECONDS; kill -9 $victim
  wait $launcher; echo "rc $? after $((SECONDS-began)) s"; tail -6 $OUT/killed-$1.txt | cut -c1-300
}
if [ "${ONLY:-}" = mpi ]; then
  one "runs agree" equality mpi 0 & one "16 runs over tiles agree" tiles mpi 0 & wait
  one "runs by edge agree" by_edge mpi 4 & one "runs with edges agree" edges mpi 4 & one "streamed runs agree" packed mpi /tmp/s4/pm & wait
  one "7 runs went on" logs mpi /tmp/s4/lm & one "3 runs over tiles went on" tiles_logs mpi /tmp/s4/tm & one "3 runs with edges went on" edge_logs mpi /tmp/s4/em & wait
  killed mpi
  exit
fi
echo "== a rank that hangs"; timeout 40 mpirun -n 4 python tests/support/gpu_rank_script.py lost peer 2 2>&1 | grep -a ExchangeError | sort | uniq -c | head -4
killed peer; killed nccl
one "runs agree" equality peer 0
one "runs agree" equality nccl 0
one "streamed runs agree" packed peer /tmp/s4/pp
one "66 batches followed" streams peer 0
one "components of 7 graphs" components peer x
one "faults named on all ranks" faults peer x
one "300 supersteps" supersteps peer 300; one "waited" unequal peer x; one "none came too early" slow_release peer 0.2
one "runs with edges agree" edges nccl 4
one "runs by edge agree" by_edge nccl 4
one "masters agree" masters nccl /tmp/s4/mn; one "masters agree" masters peer /tmp/s4/mp
one "7 runs went on" logs nccl /tmp/s4/ln
one "programs ran shared out" many peer x
one "16 runs over tiles agree" tiles peer 0; one "16 runs over tiles agree" tiles nccl 0
one "runs agree" equality peer 1
