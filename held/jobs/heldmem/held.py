import gc, sys, traceback, time
from pathlib import Path
import cupy
sys.path.insert(0, "scripts/bench")
import streaming_gpu as S
import sigps
from sigps.device.cuda import find_gpu, limit_memory
from sigps.graph.generators.drawn_store import write_drawn
from sigps.graph.generators.generate import edge_stream

class Live(cupy.cuda.MemoryHook):
    name = "live"
    def __init__(self):
        self.live = {}
    def malloc_postprocess(self, **k):
        self.live[k["pmem_id"]] = (k["mem_size"], "".join(traceback.format_stack(limit=9)[:-1]))
    def free_postprocess(self, **k):
        self.live.pop(k["pmem_id"], None)

pool = cupy.get_default_memory_pool()
store = Path("/tmp/held21")
write_drawn(edge_stream("rmat", scale=21, seed=1), store, find_gpu())
hook = Live()
with hook:
    for work in ("PageRank-run", "BFS", "WCC", "KCore"):
        graph = sigps.load(store, verify="none")
        print("=====", work, "pages MB", graph.packed.rows.words.nbytes / 1e6, "vertices", graph.num_vertices)
        least = S.least_memory(work, graph)
        limit = 4 * least
        print("least", least / 1e6)
        for turn in range(3):
            found = sigps.run(S.PROGRAMS[work], graph, device="cuda", device_memory=limit, stream="always", transfer="auto")
            print("turn", turn, "with the result: used", pool.used_bytes() / 1e6, "total", pool.total_bytes() / 1e6, flush=True)
            del found
            before = pool.used_bytes() / 1e6
            n = gc.collect()
            print("   freed: used", before, "after gc", pool.used_bytes() / 1e6, "collected", n, "total", pool.total_bytes() / 1e6, flush=True)
        big = sorted(hook.live.values(), reverse=True)[:5]
        for size, stack in big:
            if size > 2_000_000:
                print("---- live", size / 1e6)
                print("\n".join(l for l in stack.splitlines() if "sigps" in l)[-900:], flush=True)
        del graph
        gc.collect()
        print("graph gone: used", pool.used_bytes() / 1e6, flush=True)
        limit_memory(None); pool.free_all_blocks()
