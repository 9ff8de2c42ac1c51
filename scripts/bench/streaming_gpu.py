"""Time runs on a GPU whose edges are on its host: packed pages beside unpacked rows, and in memory.

    python scripts/bench/streaming_gpu.py --scales 22 24

The graph (rmat, undirected) is drawn and packed here, rows by degree. Of PageRank the time is the median of a run's
supersteps in which every edge matters; with "half" of the packed pages, or all ("kept"), device_memory leaves room on
the device. Of searches it is that of all supersteps of a run, the median of five, and results must be equal. Writes a
JSON file to `scripts/bench/results/` and prints a table.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.errors import DeviceError

SUPERSTEPS = 12
_WAYS = {
    "packed": "packed on the host",
    "bulk": "packed on the host, all read each time",
    "half": "packed, half on the GPU",
    "kept": "packed on the GPU",
    "rows": "unpacked on the host",
    "memory": "unpacked on the GPU",
}


def main() -> None:
    """Run the benchmark that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", type=int, nargs="+", default=[22], help="of the recursive-matrix graphs")
    options.add_argument("--folder", help="where stores are written")
    options.add_argument("--ways", nargs="+", default=["memory", "packed", "bulk", "half", "kept", "rows"])
    options.add_argument("--output", type=Path, default=RESULTS / "streaming-gpu.json", help="the JSON file")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | facts_of_gpu())
    for scale in given.scales:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            store = Path(folder) / "store"
            write(store, scale)
            measure_sums(table, scale, store, given.ways)
            measure_searches(table, f"kron-{scale}", store, given.ways, {"BFS": BFS(source=1), "WCC": WCC()})


def facts_of_gpu() -> dict[str, Any]:
    """Return what the GPU is, and what its link reaches."""
    from sigps.device.cuda import find_gpu

    return {"gpu": find_gpu().name, "driver": driver_version(), "link": f"{link_rate()} GB/s"}


def link_rate() -> float:
    """Return what copies from pinned memory to the device reach, in GB/s."""
    import cupy

    size = 1 << 28
    pinned, target = cupy.cuda.alloc_pinned_memory(size), cupy.empty(size, dtype=cupy.uint8)
    source = np.frombuffer(pinned, np.uint8, size)
    source[:] = 1
    seconds = []
    for _ in range(8):
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        target.set(source)
        cupy.cuda.runtime.deviceSynchronize()
        seconds.append(time.perf_counter() - begin)
    return round(size / min(seconds) / 1e9, 1)


def write(store: Path, scale: int) -> None:
    """Draw a graph and pack it."""
    begin = time.perf_counter()
    sigps.generate("rmat", scale=scale, seed=1, directed=False).save(store, packed=True, order="degree")
    print(f"scale {scale}: drawn and packed in {time.perf_counter() - begin:.1f} s", flush=True)


def measure_sums(table: Any, scale: int, store: Path, ways: list[str]) -> None:
    """Run PageRank on a graph in each way, and add rows to the table."""
    for way in ways:
        if way == "bulk":  # as "packed" is
            continue
        graph = sigps.load(store)
        assert graph.packed is not None
        packed = graph.packed.rows.words.nbytes
        asked: dict[str, Any] = {"stream": "never"} if way == "memory" else {"stream": "always"}
        if way != "memory":
            asked["transfer"] = "rows" if way == "rows" else "bulk"
        if way in ("half", "kept"):
            asked["device_memory"] = least_memory(graph) + (packed // 2 if way == "half" else packed)
        begin = time.perf_counter()
        found = run(graph, **asked)
        first = time.perf_counter() - begin
        found = run(graph, **asked)
        steps = found.stats[2 : SUPERSTEPS - 1]
        seconds = float(np.median([s.seconds for s in steps]))
        read = 4 * graph.num_edges if way == "rows" else steps[0].bytes_read
        row = {
            "graph": f"kron-{scale}",
            "work": "PageRank, a superstep",
            "edges_are": _WAYS[way],
            "edges": graph.num_edges,
            "packed_bytes": packed,
            "bytes_an_edge": round(read / graph.num_edges, 3),
            "milliseconds": round(1e3 * seconds, 2),
            "gigabytes_a_second": round(read / seconds / 1e9, 1),
            "first_run_seconds": round(first, 1),
            "largest_rank": float(np.asarray(found["rank"]).max()),
        }
        table.add(row, "  ".join(f"{name} {row[name]}" for name in list(row)[2:]))
        del graph, found


def measure_searches(
    table: Any, name: str, store: Path, ways: list[str], programs: dict[str, sigps.Vertex]
) -> None:
    """Run searches on a graph in each way, and add rows to the table."""
    expected: dict[str, dict[str, Any]] = {}
    asked: dict[str, dict[str, str]] = {
        "memory": {"stream": "never"},
        "packed": {"stream": "always"},
        "bulk": {"stream": "always", "transfer": "bulk"},
        "rows": {"stream": "always", "transfer": "rows"},
    }
    for way in (way for way in ways if way in asked):
        graph = sigps.load(store)
        for work, program in programs.items():
            begin = time.perf_counter()
            found = [sigps.run(program, graph, device="cuda", **asked[way])]
            first = time.perf_counter() - begin
            found += [sigps.run(program, graph, device="cuda", **asked[way]) for _ in range(5)]
            values = {field: np.asarray(found[-1][field]) for field in found[-1].fields}
            for field, value in expected.setdefault(work, values).items():
                np.testing.assert_array_equal(values[field], value)
            steps = [result.stats for result in found[1:]]
            row = {
                "graph": name,
                "work": work,
                "edges_are": _WAYS[way],
                "edges": graph.num_edges,
                "supersteps": len(steps[0]),
                "megabytes_read": round(sum(s.bytes_read for s in steps[0]) / 1e6, 1),
                "pages_left_out": sum(s.blocks_skipped for s in steps[0]),
                "first_run_seconds": round(first, 1),
                "search_ms": round(1e3 * float(np.median([sum(s.seconds for s in run) for run in steps])), 2),
            }
            if way in ("memory", "rows"):
                row["megabytes_read"] = row["pages_left_out"] = "not counted"
            table.add(row, "  ".join(f"{key} {value}" for key, value in list(row.items())[1:]))
        del graph, found


def run(graph: Any, **asked: Any) -> Any:
    """Run PageRank on the GPU."""
    program = PageRank(iterations=SUPERSTEPS)
    return sigps.run(program, graph, device="cuda", precision="single", **asked)


def least_memory(graph: Any) -> int:
    """Return what a run takes of the device with all pages on the host, as its refusal says."""
    try:
        run(graph, stream="always", transfer="bulk", device_memory="1MB")
    except DeviceError as error:
        return int(re.search(r"needs ([\d,]+)", str(error))[1].replace(",", ""))  # type: ignore[index]
    raise AssertionError("a megabyte is enough for this graph")


if __name__ == "__main__":
    main()
