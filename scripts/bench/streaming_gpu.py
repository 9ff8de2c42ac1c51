"""Time runs on a GPU whose edges are on its host: against what the link allows, and each way of bringing edges.

    python scripts/bench/streaming_gpu.py --graphs kron-24 kron-26

A graph is drawn and packed here: kron-N (rmat, on the GPU, rows by degree), grid-N, uniform-N (2**N vertices, 16 edges
each), ring-N (the same in a ring, a tenth of them moved), all undirected and with weights in 1 .. 255 where SSSP runs;
or a folder that `sigps.load` opens, taken undirected. What stays on the device beside vertices is a share of the
packed edges ("kept"), by `device_memory`. Of PageRank a time is the median of a run's supersteps in which every edge
matters; `at_link_ms` is what the packed bytes that cross would take at the measured rate of copies. Of searches a time
is that of all supersteps of a run, the median of some; all ways must find the same. Only `auto` may leave all edges
unpacked on the device, where the limit has room for that. `memory` is what CuPy's pool took
at most, of `device_memory`. Writes a JSON file to `scripts/bench/results/` and prints a table.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table, check

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.cli.plan.prediction import crossing_seconds
from sigps.compiler.frontend.analysis import analyse
from sigps.device.cuda import find_gpu, limit_memory
from sigps.engine.contract import RunOptions
from sigps.errors import DeviceError
from sigps.graph.generators.drawn_store import write_drawn
from sigps.graph.generators.generate import edge_stream
from sigps.job.streaming import decide_streaming

SUPERSTEPS = 12
WAYS = ["auto", "bulk", "rows"]
BY_SUPERSTEPS = "supersteps"
"""A further way: as `auto`, but with `asynchronous=False`."""

MOST_SECONDS = 1.0
"""Of supersteps of a search in one way, after which it is not repeated again."""

PROGRAMS: dict[str, Callable[[sigps.Graph], sigps.Vertex]] = {
    "PageRank": lambda graph: PageRank(iterations=SUPERSTEPS),
    "PageRank-run": lambda graph: PageRank(iterations=SUPERSTEPS),
    "BFS": lambda graph: BFS(source=first_with_edges(graph)),
    "WCC": lambda graph: WCC(),
    "SSSP": lambda graph: SSSP(source=first_with_edges(graph)),
    "KCore": lambda graph: KCore(),
}


def first_with_edges(graph: sigps.Graph) -> int:
    """Return the first vertex that has edges: half of a Kronecker graph's have none."""
    return int(np.flatnonzero(graph.out_degrees())[0])


def main() -> None:
    """Run the benchmark that the arguments describe."""
    given = arguments()
    facts = machine_facts() | ({"commit": given.commit} if given.commit else {})
    rate = link_rate()
    table = Table(given.output, facts | facts_of_gpu() | {"link": f"{rate:.1f} GB/s"})
    for graph_name in given.graphs:
        name = Path(graph_name).name
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            store = Path(folder) / "store"
            graph = make(table, graph_name, store, given.programs)
            least = {work: least_memory(work, graph) for work in given.programs}
            for kept in given.kept:
                for work in given.programs:
                    if work == "PageRank":
                        measure_sums(table, name, graph, kept, least[work], rate)
                    elif kept in (given.kept_of_searches or given.kept):
                        options = kept, least[work], given.ways, given.repeats
                        measure_search(table, name, graph, work, *options)
                del graph
                graph = sigps.load(store, verify="none")  # without pages on the device
            del graph
    limit_memory(None)
    table.note("link after", f"{link_rate():.1f} GB/s")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--graphs", nargs="+", default=["kron-22"])
    options.add_argument(
        "--programs", nargs="+", default=["PageRank", "BFS", "WCC", "SSSP"], choices=PROGRAMS
    )
    options.add_argument("--kept", type=float, nargs="+", default=[0, 0.125, 0.5], help="shares")
    options.add_argument("--kept-of-searches", type=float, nargs="+", help="of these; all by default")
    options.add_argument(
        "--ways", nargs="+", default=WAYS, choices=[*WAYS, BY_SUPERSTEPS], help="of searches"
    )
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--folder", help="where stores are written")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    given.output = given.output or RESULTS / f"streaming-gpu-{find_gpu().name.lower().replace(' ', '-')}.json"
    return given


def facts_of_gpu() -> dict[str, Any]:
    """Return what the GPU is."""
    return {"gpu": find_gpu().name, "driver": driver_version()}


def link_rate() -> float:
    """Return what copies from pinned memory to the device reach, in GB/s."""
    size = 1 << 28
    pinned, target = cupy.cuda.alloc_pinned_memory(size), cupy.empty(size, dtype=cupy.uint8)
    source = np.frombuffer(pinned, np.uint8, size)
    source[:] = 1
    seconds = []
    for _ in range(16):
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        target.set(source)
        cupy.cuda.runtime.deviceSynchronize()
        seconds.append(time.perf_counter() - begin)
    del target
    cupy.get_default_memory_pool().free_all_blocks()
    return size / min(seconds) / 1e9


def make(table: Table, name: str, store: Path, programs: list[str]) -> sigps.Graph:
    """Draw a graph and pack it, and open it."""
    limit_memory(None)
    kind, _, size = name.partition("-")
    weights = "random" if "SSSP" in programs else None
    begin = time.perf_counter()
    if kind == "kron":
        write_drawn(edge_stream("rmat", scale=int(size), seed=1, weights=weights), store, find_gpu())
    elif kind in GENERATORS:
        generator, options = GENERATORS[kind](int(size))
        sigps.generate(generator, **options, seed=1, weights=weights).undirected(simple=True).save(
            store, packed=True
        )
    else:
        sigps.load(name).undirected(simple=True).save(store, packed=True)
    seconds = time.perf_counter() - begin
    graph = sigps.load(store, verify="none")
    assert graph.packed is not None
    rows, arcs = graph.packed.rows, graph.num_edges
    row = {"graph": Path(name).name, "work": "made and packed", "arcs": arcs, "seconds": round(seconds, 1)}
    row["packed_gigabytes"] = round(rows.words.nbytes / 1e9, 2)
    row["bytes_an_arc"] = round(rows.words.nbytes / arcs, 3)
    if rows.columns:
        row["weight_bytes_an_arc"] = round(rows.columns["weight"].words.nbytes / arcs, 3)
    table.add(row, text_of(row))
    return graph


GENERATORS: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "grid": lambda n: ("grid", {"rows": n, "columns": n}),
    "uniform": lambda n: ("erdos_renyi", {"n": 1 << n, "m": 16 << n}),
    "ring": lambda n: ("watts_strogatz", {"n": 1 << n, "k": 32, "p": 0.1}),
}


def measure_sums(table: Table, name: str, graph: sigps.Graph, kept: float, least: int, rate: float) -> None:
    """Run PageRank, and add a row to the table."""
    program = PROGRAMS["PageRank"](graph)
    asked: dict[str, Any] = {"stream": "always", "transfer": "bulk", "precision": "single"}
    limit = least + int(kept * bytes_of_pages(program, graph))
    predicted = predicted_seconds(program, graph, limit)
    begin = time.perf_counter()
    found = sigps.run(program, graph, device="cuda", device_memory=limit, **asked)
    first = time.perf_counter() - begin
    steps = found.stats[2 : SUPERSTEPS - 1]
    seconds = float(np.median([s.seconds for s in steps]))
    at_link = steps[0].bytes_read / rate / 1e9
    row = {
        "graph": name,
        "work": "PageRank, a superstep",
        "kept": kept,
        "crossing_megabytes": round(steps[0].bytes_read / 1e6, 1),
        "ms": round(1e3 * seconds, 2),
        "at_link_ms": round(1e3 * at_link, 2),
        "of_link": round(at_link / seconds, 3),
        "planned_ms": round(1e3 * predicted, 2),
        "memory": memory_of(limit),
        "first_run_seconds": round(first, 1),
    }
    table.add(row, text_of(row))


def measure_search(
    table: Table,
    name: str,
    graph: sigps.Graph,
    work: str,
    kept: float,
    least: int,
    ways: list[str],
    repeats: int,
) -> None:
    """Run a search in each way, and add a row to the table."""
    program, expected = PROGRAMS[work](graph), dict[str, Any]()
    row: dict[str, Any] = {"graph": name, "work": work, "kept": kept}
    for way in ways:
        asked: dict[str, Any] = {"stream": "auto" if way == "auto" else "always", "transfer": way}
        if way == BY_SUPERSTEPS:
            asked |= {"transfer": "auto", "asynchronous": False}
        limit = least + int(kept * bytes_of_pages(program, graph))
        begin = time.perf_counter()
        found = sigps.run(program, graph, device="cuda", device_memory=limit, **asked)
        row[f"{way}_first_seconds"] = round(time.perf_counter() - begin, 1)
        times = list[float]()
        while len(times) < repeats and sum(times) < MOST_SECONDS:
            del found  # its fields are on the device
            found = sigps.run(program, graph, device="cuda", device_memory=limit, **asked)
            times.append(sum(s.seconds for s in found.stats))
        values = {field: np.asarray(found[field]) for field in found.fields}
        stats = found.stats
        del found
        for field, value in values.items():
            first_found = expected.setdefault(field, value)
            is_sum = isinstance(program, PageRank)
            check(np.allclose(value, first_found, 1e-9) if is_sum else np.array_equal(value, first_found))
        row[f"{way}_ms"] = round(1e3 * float(np.median(times)), 2)
        row[f"{way}_megabytes"] = round(sum(s.bytes_read for s in stats) / 1e6, 1)
        row[f"{way}_memory"] = memory_of(limit)
        row["supersteps"] = max(len(stats), row.get("supersteps", 0))
        print(f"  {way} {row[f'{way}_ms']} ms", flush=True)
    if {*WAYS} <= {*ways}:
        row["auto_over_best"] = round(row["auto_ms"] / min(row["bulk_ms"], row["rows_ms"]), 2)
    if {"auto", "bulk"} <= {*ways}:
        row["bulk_over_auto"] = round(row["bulk_ms"] / row["auto_ms"], 1)
    table.add(row, text_of(row))


def bytes_of_pages(program: sigps.Vertex, graph: sigps.Graph) -> int:
    """Return the packed bytes that a run reads at most in a superstep."""
    assert graph.packed is not None
    rows = graph.packed.rows
    columns = [rows.columns[name] for name in analyse(program, "double").edge_columns]
    return rows.words.nbytes + sum(column.words.nbytes for column in columns)


def least_memory(work: str, graph: sigps.Graph) -> int:
    """Return what a run takes of the device with all pages on the host, as its refusal says."""
    program, more = PROGRAMS[work](graph), {"precision": "single"} if work == "PageRank" else {}
    try:
        sigps.run(program, graph, device="cuda", device_memory="1MB", stream="always", **more)
    except DeviceError as error:
        needed = int(re.search(r"needs ([\d,]+)", str(error))[1].replace(",", ""))  # type: ignore[index]
        return needed + 16 * graph.num_vertices  # with what answers leave with the graph
    raise AssertionError("a megabyte is enough for this graph")


def predicted_seconds(program: sigps.Vertex, graph: sigps.Graph, limit: int) -> float:
    """Return what `sigps plan` predicts of a superstep that reads all edges."""
    limit_memory(None)
    options = RunOptions(stream="always", transfer="bulk", device_memory=limit, precision="single")
    derived = analyse(program, "single")
    what = decide_streaming(
        program, derived, graph, "cuda", options, host_memory=None, stream="always", threads=[1]
    )
    assert what is not None
    return crossing_seconds(what.streamed, what.arcs)


def memory_of(limit: int) -> str:
    """Return what CuPy's pool holds, of what it may."""
    return f"{cupy.get_default_memory_pool().total_bytes() / 1e6:,.1f} of {limit / 1e6:,.1f} MB"


def text_of(row: dict[str, Any]) -> str:
    """Return the rest of a row in words."""
    return "  ".join(f"{key} {value}" for key, value in list(row.items())[2:])


if __name__ == "__main__":
    main()
