"""Time the apps on one GPU, beside cuGraph where `pylibcugraph` is importable.

    pip install -e '.[cu13]'
    python scripts/bench/gpu.py --scales 22 24 --grid 4000

Graphs are resident and code is compiled. A time of a whole run is that of `sigps.run(...)` with the device
synchronised before and after, its result on the device; BFS and SSSP are means over 8 random sources with an edge
(fixed seed). A superstep of PageRank is timed by the device. Times are medians of `--repeats`. Every answer is
checked against the CPU engine, whose own are checked against others' by `cpu.py`. Writes a JSON file to
`scripts/bench/results/` and prints a table.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from facts import RESULTS, machine_facts

import sigps
from sigps.apps import BFS, SSSP, WCC, PageRank

WANTED = {
    ("PageRank, a superstep", 22): 0.60,
    ("PageRank, a superstep", 24): 2.7,
    ("BFS", 22): 1.2,
    ("BFS", 24): 3.0,
    ("SSSP", 22): 20,
    ("SSSP", 24): 60,
    ("WCC", 22): 6,
    ("WCC", 24): 20,
}


def main() -> None:
    """Run the benchmark that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", type=int, nargs="*", default=[22, 24])
    options.add_argument("--grid", type=int, default=4000, help="rows and columns; 0 for none")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    rows: list[dict[str, Any]] = []
    for scale in given.scales:
        rows += measure_kronecker(scale, given.repeats)
    if given.grid:
        rows.append(measure_grid(given.grid, given.repeats))
    report(rows, given)


def measure_kronecker(scale: int, repeats: int) -> list[dict[str, Any]]:
    """Time all four apps on one Kronecker graph."""
    graph = sigps.generate("rmat", scale=scale, weights="random")
    name = f"kron-{scale}"
    print(f"{name}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges", flush=True)
    candidates = np.flatnonzero(np.diff(graph.offsets) > 0)
    sources = np.random.default_rng(1).choice(candidates, 8).tolist()
    rows = [measure_pagerank(graph, name, repeats)]
    rows.append(measure_searches(graph, name, "BFS", BFS, "level", sources, repeats))
    rows.append(measure_searches(graph, name, "SSSP", SSSP, "distance", sources, repeats))
    whole, device, result = timed(lambda: run(WCC(), graph), repeats)
    check(np.array_equal(result["component"], sigps.run(WCC(), graph, device="cpu")["component"]))
    rows.append(row("WCC", name, whole, device))
    for made in rows:
        made["wanted_ms"] = WANTED.get((made["work"], scale))
        show(made)
    return rows + cugraph_rows(graph, name, sources, repeats)


def run(program: sigps.Vertex, graph: sigps.Graph) -> sigps.Result:
    """Run on the GPU in single precision, as the peers do."""
    return sigps.run(program, graph, device="cuda", precision="single")


def measure_pagerank(graph: sigps.Graph, name: str, repeats: int) -> dict[str, Any]:
    """Time a superstep of 30, and check 10 of them."""
    program = PageRank(iterations=30)
    run(program, graph)
    seconds = [s.seconds for _ in range(repeats) for s in run(program, graph).stats[2:-1]]
    judge = sigps.run(PageRank(iterations=10), graph, device="cpu")["rank"]
    check(np.allclose(run(PageRank(iterations=10), graph)["rank"], judge, rtol=1e-3))
    superstep = statistics.median(seconds)
    return row("PageRank, a superstep", name, superstep, superstep)


def measure_searches(
    graph: sigps.Graph, name: str, work: str, program: Any, field: str, sources: list[int], repeats: int
) -> dict[str, Any]:
    """Time a search from each source, and check the last."""
    found = [timed(lambda s=s: run(program(source=s), graph), repeats) for s in sources]  # type: ignore[misc]
    judge = sigps.run(program(source=sources[-1]), graph, device="cpu", precision="single")
    check(np.array_equal(found[-1][2][field], judge[field]))
    return row(work, name, statistics.mean(f[0] for f in found), statistics.mean(f[1] for f in found))


def measure_grid(size: int, repeats: int) -> dict[str, Any]:
    """Time a breadth-first search through a grid from its corner: a level for each diagonal."""
    graph = sigps.generate("grid", rows=size, columns=size)
    whole, device, result = timed(lambda: run(BFS(source=0), graph), repeats)
    i, j = np.indices((size, size))
    check(np.array_equal(result["level"], (i + j).ravel()))
    made = row("BFS", f"grid-{size}", whole, device) | {"wanted_ms": 60 if size == 4000 else None}
    made["supersteps"] = result.supersteps
    show(made)
    return made


def timed(work: Callable[[], sigps.Result], repeats: int) -> tuple[float, float, sigps.Result]:
    """Return the median seconds of a call, of its supersteps on the device, and the last result."""
    work()
    whole, device = [], []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        result = work()
        cupy.cuda.Device().synchronize()
        whole.append(time.perf_counter() - began)
        device.append(sum(s.seconds for s in result.stats))
    return statistics.median(whole), statistics.median(device), result


def cugraph_rows(graph: sigps.Graph, name: str, sources: list[int], repeats: int) -> list[dict[str, Any]]:
    """Time cuGraph on the same graph; nothing where it is not installed."""
    if importlib.util.find_spec("pylibcugraph") is None:
        return []
    import pylibcugraph as peer

    handle = peer.ResourceHandle()
    ends = (
        cupy.repeat(cupy.arange(graph.num_vertices), np.diff(graph.offsets).tolist()),
        cupy.asarray(graph.targets.astype(np.int64)),
    )
    made = peer.SGGraph(
        handle,
        peer.GraphProperties(is_symmetric=True, is_multigraph=False),
        *ends,
        weight_array=cupy.asarray(graph.columns["weight"]),
        renumber=True,
        store_transposed=True,
    )

    def rounds(count: int) -> Any:
        return peer.pagerank(
            handle, made, None, None, None, None, 0.85, 0.0, count, False, fail_on_nonconvergence=False
        )

    few, many = (median(lambda n=n: rounds(n), repeats) for n in (10, 60))  # type: ignore[misc]
    works: dict[str, Callable[[int], Any]] = {
        "BFS": lambda s: peer.bfs(handle, made, cupy.array([s]), True, -1, False, False),
        "SSSP": lambda s: peer.sssp(handle, made, s, np.inf, True, False),
        "WCC": lambda s: peer.weakly_connected_components(handle, made, None, None, None, None, False),
    }
    seconds = {"PageRank, a superstep": (many - few) / 50}
    for work, call in works.items():
        seconds[work] = statistics.mean(median(lambda s=s, c=call: c(s), repeats) for s in sources)  # type: ignore[misc]
    rows = [row(work, name, s, s) | {"by": "cuGraph"} for work, s in seconds.items()]
    for made_row in rows:
        show(made_row)
    return rows


def median(work: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of a call on the device, after one that is not counted."""
    work()
    seconds = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        work()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def check(is_right: Any) -> None:
    """Stop where an answer that was timed is wrong."""
    if not is_right:
        raise SystemExit("the answer differs from the CPU engine's; no time is reported")


def row(work: str, graph: str, whole: float, device: float) -> dict[str, Any]:
    """Return one line of the result."""
    times = {"whole_ms": round(whole * 1e3, 3), "device_ms": round(device * 1e3, 3)}
    return {"work": work, "graph": graph, "by": "sigps", **times}


def show(made: dict[str, Any]) -> None:
    """Print one line of the table."""
    wanted = f"(wanted {made['wanted_ms']})" if made.get("wanted_ms") else ""
    print(
        f"{made['graph']:<10} {made['work']:<22} {made['by']:<8} {made['whole_ms']:>9.3f} ms whole"
        f" {made['device_ms']:>9.3f} ms on the device {wanted}",
        flush=True,
    )


def report(rows: list[dict[str, Any]], given: Any) -> None:
    """Keep the table with what it was measured on."""
    driver = cupy.cuda.runtime.driverGetVersion()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    facts = machine_facts("numba-cuda", "cuda-core") | {
        "gpu": name,
        "cuda_driver": f"{driver // 1000}.{driver % 1000 // 10}",
        "repeats": given.repeats,
        "rows": rows,
    }
    facts["commit"] = given.commit or facts["commit"]
    target = RESULTS / f"gpu-{name.lower().replace(' ', '-')}.json"
    target.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"written to {target}")


if __name__ == "__main__":
    main()
