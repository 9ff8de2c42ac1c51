"""Milliseconds of programs that keep values on edges, by where values and rows lie."""

import pathlib
import sys
import tempfile
import time

import sigps
from gas_programs import BeliefPropagation
from sigps.apps import MinimumSpanningForest, StreamDN
from sigps.engine.gpu import placement
from sigps.engine.gpu.spilling import Spilling
from sigps.graph.formats.packed_store import save_packed

scale = int(sys.argv[1]) if len(sys.argv) > 1 else 20
graph = sigps.generate("rmat", scale=scale, seed=1, weights="random").undirected()
folder = pathlib.Path(tempfile.mkdtemp())
save_packed(graph, folder / "store", order="given")
print(f"rmat-{scale}: {graph.num_edges:,} arcs", flush=True)
programs = [(StreamDN(scans=4), 10), (BeliefPropagation(rounds=6), 7), (MinimumSpanningForest(), 30)]
ways = {
    "all on the GPU": (None, None),
    "packed, values and reverse on the GPU": ("packed", [True, True]),
    "packed, values on the host": ("packed", [False, True]),
    "packed, values and reverse on the host": ("packed", [False, False]),
    "rows on the host": ("rows", (True, False)),
    "rows and values on the host": ("rows", (False, False)),
}
real = placement.choose_spilling
for name, (kind, stays) in ways.items():
    used, options = graph, {"device": "cuda"}
    if kind == "packed":
        used, options["stream"] = sigps.load(folder / "store"), "always"
        placement._stays = lambda wanted, room, stays=stays: stays
    elif kind == "rows":
        options["stream"] = "always"
        placement.choose_spilling = lambda *_, movable=(), stays=stays, **__: Spilling(1.0, 1 << 22, movable, stays)
    for program, steps in programs:
        times = []
        try:
            for _ in range(3):
                begun = time.perf_counter()
                result = sigps.run(program, used, max_supersteps=steps, **options)
                times.append(time.perf_counter() - begun)
        except sigps.errors.SigpsError as error:
            print(f"{type(program).__name__:24} {name:40} {error}")
            continue
        steps_ms = [1e3 * s.seconds for s in result.stats]
        print(
            f"{type(program).__name__:24} {name:40} run {min(times) * 1e3:8.1f} ms, first {times[0] * 1e3:8.1f}, "
            f"{result.supersteps} supersteps in {sum(steps_ms):8.1f} ms, longest {max(steps_ms):7.1f}, "
            f"read {sum(s.bytes_read for s in result.stats) / 1e6:8.1f} MB",
            flush=True,
        )
