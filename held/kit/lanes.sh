#!/usr/bin/env bash
# lanes.sh PLAN LIMIT: runs the jobs of a plan; lines "phase NAME SECONDS" and "GPUS JOB"
set -u
began=$SECONDS
plan=$1 limit=$2
root=$PWD
mkdir -p /tmp/o /tmp/j/data/plain /tmp/cache /tmp/t "$OUT"
rm -rf /tmp/jobs; cp -r .gpu/jobs /tmp/jobs; cp .gpu/one.json /tmp/one.json
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee $OUT/info
nproc; uptime
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit
cp -r .gpu/data/xz .gpu/data/conformance /tmp/j/data/ 2>/dev/null
for f in /tmp/j/data/xz/*.xz; do (xz -dkc "$f" > /tmp/j/data/plain/$(basename "$f" .xz)) & done; wait
export GPU_DATA=/tmp/j/data SIGPS_DATA=/tmp/j/data/xz SIGPS_CONFORMANCE=/tmp/j/data/conformance PYTHONUNBUFFERED=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export MAIN=/tmp/t/main
for t in .gpu/trees/*.tgz; do n=$(basename $t .tgz); [ -d /tmp/t/$n ] || { mkdir -p /tmp/t/$n; tar xzf $t -C /tmp/t/$n; }; done
echo "ready $((SECONDS-began)) s"
collect() { (cd /tmp/o && tar czf /tmp/o.tgz --exclude='*.npz' . && cp /tmp/o.tgz "$OUT/out.tgz"); }
one() { # GPUS JOB PINNED
  local gpus=${1//[a-z]/} job=$2 dir=$root/.gpu/jobs/$2 s tree cores
  s=$(cat $dir/seconds); tree=$(cat $dir/tree 2>/dev/null || echo main)
  local left=$((limit - SECONDS + began - 6)); [ $s -gt $left ] && s=$left
  [ $s -lt 15 ] && { echo "no time for $job"; return; }
  cores=$(for g in ${gpus//,/ }; do echo -n "$((g*16))-$((g*16+15)),"; done); cores=${cores%,}
  mkdir -p /tmp/o/$job
  local t0=$SECONDS
  ( cd /tmp/t/$tree && OUT=/tmp/o/$job PYTHONPATH=/tmp/t/$tree:/tmp/site SITE=/tmp/site SIGPS_CACHE_DIR=/tmp/cache CUDA_VISIBLE_DEVICES=$gpus \
    $( [ $3 = 1 ] && echo taskset -c $cores ) setsid -w timeout -k 3 $s bash $dir/job.sh < /dev/null > /tmp/o/$job/log 2>&1 )
  local rc=$?
  for e in /proc/[0-9]*/environ; do if (tr '\0' '\n' < $e | grep -qx "OUT=/tmp/o/$job") 2>/dev/null; then p=${e#/proc/}; kill -9 ${p%/environ} 2>/dev/null; fi; done
  echo "job $job gpus $gpus rc $rc $((SECONDS-t0)) s at $((SECONDS-began))"
}
lane() { local g=$1 pinned=$2; shift 2; for j in "$@"; do one $g $j $pinned; done; }
phase() { # runs what is in lanes
  local pinned=$1 g
  for g in "${!lanes[@]}"; do lane $g $pinned ${lanes[$g]} & done; wait
  collect
}
declare -A lanes=(); pinned=1
while read -r a b; do
  case $a in
    ''|\#*) ;;
    phase) if [ ${#lanes[@]} -gt 0 ]; then phase $pinned; fi; lanes=(); pinned=1; [ "$b" = loose ] && pinned=0; echo "phase $b at $((SECONDS-began))";;
    *) lanes[$a]="${lanes[$a]:-} $b";;
  esac
done < $plan
phase $pinned
echo "ended $((SECONDS-began)) s"
tail -n 3 /tmp/o/*/log | cut -c1-300 | tail -c 9000
