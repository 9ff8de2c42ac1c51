# warm GRAPH PROGRAM...: compile what later runs use, each program in a process of its own, all beside each other.
# Beside SSSP graphs have weights, and kernels are compiled for their columns: then each process has SSSP, too.
warm() {
  local graph=$1; shift
  local begun=$SECONDS with=""
  case " $* " in *" SSSP "*) with=SSSP ;; esac
  for program in "$@"; do
    local both="$program"; [ -z "$with" ] || [ "$program" = SSSP ] || both="$program $with"
    timeout 100 python scripts/bench/streaming_gpu.py --graphs "$graph" --programs $both --kept 0 --ways $WAYS \
      --repeats 1 --output "/tmp/warm-$graph-$program.json" --commit warm >"/tmp/warm-$graph-$program.log" 2>&1 &
  done
  wait
  echo "warm after $((SECONDS - begun)) s"
  grep -l Traceback /tmp/warm-"$graph"-*.log | while read -r log; do echo "== $log"; tail -5 "$log"; done
}
