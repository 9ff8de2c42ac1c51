"""Searches along packed pages on hosts by several costs of a row. cost.py STORE PROGRAMS TRANSPORT COSTS VERBOSE"""
import sys, time
import numpy as np
import sigps
from sigps.apps import BFS, SSSP, WCC
from sigps.engine.gpu import engine, staged
from sigps.group import world
group = world()
store, programs, transport, costs = sys.argv[1], sys.argv[2].split(","), sys.argv[3], [int(c) for c in sys.argv[4].split(",")]
graph = sigps.load(store, verify="none", group=group)
order = graph.packed.order
source = int(order[: order.size // 100].min() if len(sys.argv) < 6 else 0)
def say(*of):
    if group.rank == 0: print(*of, flush=True)
for name in programs:
    program = {"BFS": BFS(source=source), "WCC": WCC(), "SSSP": SSSP(source=source), "BFS0": BFS(source=0)}[name]
    for cost in [costs[0], *costs]:
        engine.GPU_ROW_COST = staged.GPU_ROW_COST = cost
        times = []
        for _ in range(3):
            found = sigps.run(program, graph, device="cuda", stream="always", transport=transport, gather=False)
            stats = list(found.stats); times.append(1e3 * sum(s.seconds for s in stats)); del found
        say(f"{name} ranks {group.size} {transport} cost {cost}: {sorted(times)[1]:.2f} ms, read {sum(s.bytes_read for s in stats)/1e6:.1f} MB:", " ".join(f"{s.direction[:4]} {1e3*s.seconds:.2f} ({s.bytes_read/1e6:.0f} MB)" for s in stats))
