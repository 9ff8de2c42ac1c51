import sys, tempfile, time, cProfile, pstats, io
sys.path.insert(0, "scripts/bench")
from pathlib import Path
import numpy as np
import streaming_gpu as b
import sigps
from facts import machine_facts
from measuring import Table
t0 = time.perf_counter()
def say(*of): print(f"{time.perf_counter()-t0:7.1f}", *of, flush=True)
scale, out, commit = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
rate = b.link_rate()
table = Table(out, machine_facts() | {"commit": commit} | b.facts_of_gpu() | {"link": f"{rate:.1f} GB/s"})
with tempfile.TemporaryDirectory() as folder:
    store = Path(folder) / "store"
    graph = b.make(table, f"kron-{scale}", store, ["BFS"])
    say("made")
    for work, field in (("BFS", "level"), ("WCC", "component")):
        program = b.PROGRAMS[work](graph); say("program")
        least = b.least_memory(work, graph); say("least", least)
        limit = least + int(0.125 * b.bytes_of_pages(program, graph))
        for turn in range(3):
            found = None
            profile = cProfile.Profile() if turn == 1 else None
            if profile: profile.enable()
            found = sigps.run(program, graph, device="cuda", device_memory=limit, stream="always")
            if profile:
                profile.disable(); text = io.StringIO(); pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(14); print(text.getvalue()[:3500], flush=True)
            stats = list(found.stats); say(work, f"{1e3*sum(s.seconds for s in stats):.2f} ms, read {sum(s.bytes_read for s in stats)/1e6:.1f} MB", b.memory_of(limit))
        for s in stats[:20]:
            print(f"      {s.superstep} {s.direction}: {1e3*s.seconds:.2f} ms active {s.active} messages {s.messages} read {s.bytes_read/1e6:.1f} MB skipped {s.blocks_skipped}", flush=True)
        values = np.asarray(found[field]); say("sum", work, float(values.sum(dtype=np.float64)), int(values.size)); del values
    found = None
    del graph
