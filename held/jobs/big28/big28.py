"""kron-N with weights, an eighth of its pages on the device: BFS, WCC and SSSP by costs of a row, SSSP by pages."""
import sys, tempfile, time
sys.path.insert(0, "scripts/bench")
from pathlib import Path
import numpy as np
import streaming_gpu as b
import sigps
from facts import machine_facts
from measuring import Table
from sigps.device.cuda import limit_memory
from sigps.engine.gpu import engine, staged
t0 = time.perf_counter()
def say(*of): print(f"{time.perf_counter()-t0:7.1f}", *of, flush=True)
scale, out, commit = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
rate = b.link_rate()
table = Table(out, machine_facts() | {"commit": commit} | b.facts_of_gpu() | {"link": f"{rate:.1f} GB/s"})
with tempfile.TemporaryDirectory() as folder:
    store = Path(folder) / "store"
    graph = b.make(table, f"kron-{scale}", store, ["SSSP"])
    say("made")
    for work, field, ways in (("SSSP", "distance", ["pages", 45]), ("BFS", "level", [45])):
        program = b.PROGRAMS[work](graph); say("program")
        least = b.least_memory(work, graph); say("least", least)
        limit = least + int(0.125 * b.bytes_of_pages(program, graph))
        for way in ways:
            engine.GPU_ROW_COST = 45 if way == "pages" else way
            more = {"asynchronous": True} if way == "pages" else {}
            times = []
            for turn in range(3):
                found = None; began = time.perf_counter()
                found = sigps.run(program, graph, device="cuda", device_memory=limit, stream="always", **more)
                stats = list(found.stats); times.append(sum(s.seconds for s in stats)); say(work, way, f"{1e3*times[-1]:.2f} ms, run {time.perf_counter()-began:.2f} s")
            say(work, "cost", way, f"median of later {1e3*sorted(times[1:])[len(times[1:])//2]:.2f} ms, read {sum(s.bytes_read for s in stats)/1e6:.1f} MB", b.memory_of(limit))
            for s in stats[:20]:
                print(f"      {s.superstep} {s.direction}: {1e3*s.seconds:.2f} ms active {s.active} messages {s.messages} read {s.bytes_read/1e6:.1f} MB skipped {s.blocks_skipped}", flush=True)
            if True:
                values = np.asarray(found[field]); values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
                say("sum", work, way, float(values.sum(dtype=np.float64)), int(values.size)); del values
            found = None
    del graph
limit_memory(None)
