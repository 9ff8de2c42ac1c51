"""WCC on kron-24 and grid-4000 on as many GPUs as there are ranks: in priority order (before) and at once (after).

    mpirun -n 2 python measure.py --output two.json [--against one.json] [--only before]

Both are run in turn in one process, on one partition. `whole`: from a barrier to a barrier of all ranks, the answer on
the GPUs; `host`: each rank's part as NumPy, too. On one rank `after` is what these kernels would do there, an experiment.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import sigps
from sigps.apps import WCC
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.group import world

try:
    from sigps.engine.gpu import placement, rank_components
except ImportError:  # main
    rank_components = None

GROUP = world()
OPTIONS: dict[str, Any] = {"device": "cuda", "precision": "single", "gather": False}


def tell(text: str) -> None:
    if GROUP.rank == 0:
        print(text, flush=True)


class OneRank:
    """The kernels of rank_components.cu on one GPU that has the whole graph; no forest, and nobody to wait for."""

    def __init__(self, graph: Any, gpu: Any, takes_min: bool) -> None:
        self._graph, self._gpu, self._takes_min = graph, gpu, takes_min

    def run(self, values: Any) -> SuperstepStats:
        import cupy

        began, graph = time.perf_counter(), self._graph
        kernels = rank_components._kernels(self._gpu, values.dtype.name, self._takes_min)
        n = np.uint32(graph.num_owned)
        parents, best = cupy.empty(graph.num_owned, dtype=cupy.uint32), cupy.empty_like(values)
        hubs = cupy.empty(1 + rank_components._most_hubs(graph), dtype=cupy.uint32)
        account, pairs = cupy.zeros(2, dtype=cupy.uint64), cupy.zeros(1, dtype=cupy.uint32)
        hubs[:1].data.memset_async(0, 4)
        rows = graph.incoming.structure(), graph.incoming.structure()

        def launch(name: str, *given: Any) -> None:
            blocks = max(1, min(self._gpu.num_sms * 16, -(-graph.num_owned // 256)))
            kernels[name].launch(blocks, 256, given)

        launch("begin_rank_trees_thread_mapped", *rows, n, parents, values, best)
        launch("join_first_edges_thread_mapped", *rows, n, parents)
        launch("join_other_edges_warp_mapped", *rows, n, parents, hubs[:1], hubs[1:])
        launch("join_hubs_grid_mapped", *rows, parents, hubs[:1], hubs[1:])
        launch("settle_rank_trees_thread_mapped", n, n, parents, values, best)
        launch("take_best_thread_mapped", n, parents, parents, best, values, pairs, account)
        changed = int(cupy.asnumpy(account)[0])
        counts = changed, graph.numbering.subgraph.num_edges
        return SuperstepStats(1, AT_ONCE, *counts, 0, time.perf_counter() - began, 1.0)


def use(way: str) -> None:
    """Let runs go by supersteps in priority order, or at once."""
    if rank_components is None:
        return
    if GROUP.size == 1:
        from sigps.engine.gpu import engine

        def made(program: Any, graph: Any, gpu: Any) -> Any:
            if way == "after" and graph.is_symmetric:
                return OneRank(graph, gpu, program.slots[0].op == "min")
            return PLAIN(program, graph, gpu)

        engine.gpu_components = made
    else:
        rank_components.may_have_components = lambda subgraph: way == "after" and MAY(subgraph)


if rank_components is not None:
    from sigps.engine.gpu import components

    PLAIN, MAY = components.gpu_components, rank_components.may_have_components


def timed_kernels(graph: Any) -> None:
    """Print what each kernel takes, with the device waited for after each; of the slowest rank."""
    import cupy

    plain, taken = rank_components._kernels, {}

    class Timed:
        def __init__(self, name: str, kernel: Any) -> None:
            self._name, self._kernel = name, kernel

        def launch(self, *given: Any, **options: Any) -> None:
            cupy.cuda.get_current_stream().synchronize()
            began = time.perf_counter()
            self._kernel.launch(*given, **options)
            cupy.cuda.get_current_stream().synchronize()
            taken.setdefault(self._name, []).append(time.perf_counter() - began)

    rank_components._kernels = lambda *given: {name: Timed(name, k) for name, k in plain(*given).items()}
    for _ in range(4):
        sigps.run(WCC(), graph, **OPTIONS)
    rank_components._kernels = plain
    mine = {name: round(min(seconds) * 1e6, 1) for name, seconds in taken.items()}
    for name in mine:
        tell(f"    {name:34} {max(m[name] for m in GROUP.all_gather(mine)):8.1f} us")
        if GROUP.rank:
            pass


def judged(graph: Any, parts: dict[str, np.ndarray]) -> str:
    """Compare the parts of this rank, and on all ranks."""
    same = np.array_equal(*parts.values()) if len(parts) == 2 else True
    return "equal" if all(GROUP.all_gather(bool(same))) else "DIFFERENT"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--output", type=Path, required=True)
    options.add_argument("--against", type=Path)
    options.add_argument("--only", choices=["before", "after"])
    options.add_argument("--scale", type=int, default=24)
    options.add_argument("--grid", type=int, default=4000)
    options.add_argument("--repeats", type=int, default=11)
    options.add_argument("--device", default="cuda")
    given = options.parse_args()
    OPTIONS["device"] = given.device
    earlier = json.loads(given.against.read_text()) if given.against and given.against.exists() else {}
    rows: dict[str, Any] = {}
    graphs = {}
    if given.scale:
        graphs[f"kron-{given.scale}"] = lambda: sigps.generate("rmat", scale=given.scale)
    if given.grid:
        graphs[f"grid-{given.grid}"] = lambda: sigps.generate("grid", rows=given.grid, columns=given.grid)
    for name, made in graphs.items():
        began = time.perf_counter()
        graph = made()
        tell(f"{name}: {graph.num_edges:,} edges, there in {time.perf_counter() - began:.1f} s")
        ways = ["before", "after"] if rank_components is not None and given.device == "cuda" else ["before"]
        ways = [way for way in ways if given.only in (None, way)]
        seconds: dict[tuple[str, str], list[float]] = {}
        found: dict[str, Any] = {}
        for turn in range(given.repeats + 1):
            for way in ways:
                use(way)
                GROUP.barrier()
                began = time.perf_counter()
                result = sigps.run(WCC(), graph, **OPTIONS)
                GROUP.barrier()
                whole = time.perf_counter() - began
                part = result["component"]
                GROUP.barrier()
                host = time.perf_counter() - began
                if turn == 0:
                    tell(f"  {way}: the first run {whole:.2f} s")
                    found[way] = np.array(part), list(result.stats)
                    continue
                seconds.setdefault((way, "whole"), []).append(whole)
                seconds.setdefault((way, "host"), []).append(host)
                device = sum(s.seconds for s in result.stats)
                seconds.setdefault((way, "supersteps"), []).append(device)
        says = judged(graph, {way: part for way, (part, _) in found.items()})
        for way in ways:
            stats = found[way][1]
            row = {what: round(statistics.median(seconds[way, what]) * 1e3, 3) for what in ("whole", "host", "supersteps")}
            row["least whole"] = round(min(seconds[way, "whole"]) * 1e3, 3)
            key = f"{name} {way}"
            rows[key] = row
            one = earlier.get(f"{name} before")
            more = f"  times one GPU's: whole {one['whole'] / row['whole']:.2f}, host {one['host'] / row['host']:.2f}" if one else ""
            kinds = [s.direction for s in stats]
            tell(
                f"  {name} {GROUP.size} ranks {way:7} whole {row['whole']:8.3f} (least {row['least whole']:.3f}) host "
                f"{row['host']:8.3f} in supersteps {row['supersteps']:8.3f} ms, {len(kinds)} {kinds[:3]}..{kinds[-1]}, changed "
                f"{stats[-1].active:,}, moved {stats[-1].bytes_moved:,}, seconds at once {stats[-1].seconds * 1e3:.3f} ms"
                f"{more}"
            )
        tell(f"  {name}: components are {says}")
        if GROUP.rank == 0:
            given.output.write_text(json.dumps(rows, indent=2) + "\n")
        if "after" in ways:
            use("after")
            timed_kernels(graph)
        del graph, result, found


if __name__ == "__main__":
    main()
