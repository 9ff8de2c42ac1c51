"""Supersteps of PageRank in rows, in tiles behind the barrier, and in tiles of which owned segments go early.

    mpirun -n 2 python ab.py --scales 24 --out FILE [--against FILE of one rank]
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import PageRank
from sigps.group import world

GROUP = world()
EARLY = {"on": True}


def patch() -> None:
    from sigps.engine.gpu import peers

    made = peers.GpuPeerEngine.__init__

    def init(self, *given, **options):
        made(self, *given, **options)
        if not EARLY["on"]:
            self._lease["tiles"]["num_early"] = 0

    peers.GpuPeerEngine.__init__ = init


def say(*text) -> None:
    if GROUP.rank == 0:
        print(*text, flush=True)


def run(graph, iterations, precision, way):
    EARLY["on"] = way != "tiles behind"
    return sigps.run(
        PageRank(iterations=iterations),
        graph,
        device="cuda",
        precision=precision,
        tiles="never" if way == "rows" else "always",
        gather=False,
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--scales", type=lambda t: [int(x) for x in t.split(",")])
    options.add_argument("--precisions", type=lambda t: t.split(","), default=["single", "double"])
    options.add_argument("--ways", type=lambda t: t.split(","), default=None)
    options.add_argument("--repeats", type=int, default=4)
    options.add_argument("--out", type=Path)
    options.add_argument("--against", type=Path)
    given = options.parse_args()
    before = json.loads(given.against.read_text()) if given.against and given.against.exists() else {}
    ways = given.ways or (["rows", "tiles"] if GROUP.size == 1 else ["rows", "tiles behind", "tiles"])
    if GROUP.size > 1:
        patch()
    rows = {}
    for scale in given.scales:
        began = time.perf_counter()
        graph = sigps.generate("rmat", scale=scale)
        say(f"kron-{scale} on {GROUP.size}: drawn in {time.perf_counter() - began:.1f} s")
        for precision in given.precisions:
            answers, times = {}, {way: [] for way in ways}
            for way in ways:
                began = time.perf_counter()
                answers[way] = np.array(run(graph, 6, precision, way)["rank"])
                say(f"  {precision} {way}: laid out and run in {time.perf_counter() - began:.1f} s")
            total = sum(GROUP.all_gather(float(answers[ways[-1]].sum(dtype=np.float64))))
            largest = max(GROUP.all_gather(float(answers[ways[0]].max())))
            for way in ways[1:]:
                worst = float(np.abs(answers[way].astype(float) - answers[ways[0]]).max()) / largest
                worst = max(GROUP.all_gather(worst))
                good = worst < (1e-5 if precision == "single" else 1e-13) and abs(total - 1) < 1e-3
                say(f"  {way} beside {ways[0]}: {worst:.1e} of the largest, sum {total:.6f}", "ok" if good else "WRONG")
            for _ in range(given.repeats):
                for way in ways:
                    result = run(graph, 20, precision, way)
                    times[way] += [s.seconds * 1e3 for s in list(result.stats)[2:-1]]
                    last = list(result.stats)[5]
                    if way == ways[-1]:
                        note = f"imbalance {last.imbalance:.3f}"
            for way in ways:
                ms = statistics.median(times[way])
                key = f"kron-{scale} {precision} {way}"
                rows[key] = ms
                one = before.get(f"kron-{scale} {precision} " + ("rows" if way == "rows" else "tiles"))
                more = f"  {one / ms:.3f} times one GPU's {one:.4f}" if one else ""
                say(f"| {key} | {GROUP.size} GPUs | {ms:.4f} ms | least {min(times[way]):.4f} |{more}")
            say(f"  {note}")
            if GROUP.rank == 0:
                given.out.write_text(json.dumps(rows, indent=1))


main()
