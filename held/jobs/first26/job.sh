# First runs over packed edges: before ($MAIN) and after; kernels linked before. Drawn once.
here=$(cd "$(dirname "$0")" && pwd)
export SIGPS_CACHE_DIR=/tmp/cache
mkdir -p /tmp/packed
for tree in $MAIN $PWD; do
  cd $tree
  echo "== $tree at $SECONDS"
  PYTHONPATH=$tree:/tmp/site timeout 75 mpirun -n ${RANKS:-1} python $here/prof.py ${SCALE:-26} > $OUT/prof-$(basename $tree).txt 2>&1
  grep -E "drawn|links|^run" $OUT/prof-$(basename $tree).txt
  grep -A9 "internal time" $OUT/prof-$(basename $tree).txt | cut -c1-140
done
PYTHONPATH=$PWD:/tmp/site python - <<'P'
import time, numpy as np, cupy
from concurrent.futures import ThreadPoolExecutor
cupy.zeros(1)
size = 8 << 30
t = time.perf_counter(); p = cupy.cuda.alloc_pinned_memory(size); print("alloc_pinned 8 GiB", time.perf_counter() - t); del p
cupy.get_default_pinned_memory_pool().free_all_blocks()
from sigps.device.host_block import HostBlock
b = HostBlock(size); n = 1 << 26
def touch(i): b.raw[i*n:(i+1)*n] = 1
t = time.perf_counter()
with ThreadPoolExecutor(16) as pool: list(pool.map(touch, range(size // n)))
print("touched by 16 threads", time.perf_counter() - t)
t = time.perf_counter(); ok = b.pin(); print("pinned", ok, time.perf_counter() - t)
d = cupy.empty(1 << 28, cupy.uint8)
for _ in range(3):
    cupy.cuda.runtime.deviceSynchronize(); t = time.perf_counter(); d.set(b.raw[:1 << 28]); cupy.cuda.runtime.deviceSynchronize(); print("GB/s", (1 << 28) / (time.perf_counter() - t) / 1e9)
t = time.perf_counter(); b.unpin(); print("unpinned", time.perf_counter() - t)
P
