"""Time the apps on one GPU, beside CUDA written by hand, and cuGraph where `pylibcugraph` is importable.

    pip install -e '.[cu13]'
    python scripts/bench/gpu.py --scales 22,24 --grid 4000
    python scripts/bench/gpu.py --scales 22 --only pagerank,by-hand --output found.json

Graphs are resident and code is compiled. A time of a whole run is that of `sigps.run(...)` with the device
synchronised before and after, its result on the device; BFS and SSSP are means over 8 random sources with an
edge (fixed seed), and "on the host" their answers are NumPy's, too. A superstep of PageRank is timed by the
device. Triangles are counted anew each time, before the first superstep, so their time is the whole run's.
Times are medians of `--repeats`. Every answer but core numbers is checked against the CPU engine, whose own
are checked against others' by `cpu.py`. Prints a row as soon as it is measured, and writes the JSON file anew
with it, by default in `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import by_hand
import cupy
import device_memory
import numpy as np
import peer_cugraph
from facts import RESULTS, driver_version, machine_facts
from master_compute import measure_master
from measuring import Case, Table, check, kept_or_made, run, timed
from roof import shares_of_roof

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank, Triangles
from sigps.device.cuda import find_gpu
from sigps.engine.gpu.resident import graphs_on_gpu

WANTED = {
    ("PageRank, a superstep", 22): 0.60,
    ("PageRank, a superstep", 24): 2.7,
    ("BFS", 22): 1.2,
    ("BFS", 24): 3.0,
    ("BFS, on the host", 22): 3.75,
    ("BFS, on the host", 24): 25.4,
    ("SSSP", 22): 20,
    ("SSSP", 24): 60,
    ("WCC", 22): 6,
    ("WCC", 24): 20,
    ("Triangles", 22): 250,
    ("Triangles", 24): 1800,
    ("KCore", 22): 120,
    ("KCore", 24): 250,
}


def forget_counts(graph: sigps.Graph) -> None:
    """Let the next run count triangles anew, as if it were the first."""
    for _, subgraph in graph.derived("partitions", dict).values():
        for on_gpu in graphs_on_gpu(subgraph, find_gpu()).values():
            on_gpu.forget("around")


def measure_pagerank(case: Case, table: Table, repeats: int) -> None:
    """Time a superstep of 30, and check 10 of them."""
    program = PageRank(iterations=30)
    run(program, case.graph)
    seconds = [s.seconds for _ in range(repeats) for s in list(run(program, case.graph).stats)[2:-1]]
    judge = sigps.run(PageRank(iterations=10), case.graph, device="cpu")["rank"]
    check(np.allclose(run(PageRank(iterations=10), case.graph)["rank"], judge, rtol=1e-3))
    superstep = statistics.median(seconds)
    shares = shares_of_roof(case.graph.num_vertices, case.graph.num_edges, superstep)
    add("PageRank, a superstep", case, table, superstep, superstep, **shares)


def measure_bfs(case: Case, table: Table, repeats: int) -> None:
    """Time breadth-first searches."""
    measure_searches("BFS", BFS, "level", case, table, repeats)


def measure_sssp(case: Case, table: Table, repeats: int) -> None:
    """Time shortest paths with whole weights 1 to 255."""
    measure_searches("SSSP", SSSP, "distance", case, table, repeats)


def measure_searches(work: str, program: Any, field: str, case: Case, table: Table, repeats: int) -> None:
    """Time a search from each source, and check the last."""
    sources = case.sources
    found = [timed(lambda s=s: run(program(source=s), case.graph), repeats) for s in sources]  # type: ignore[misc]
    judge = sigps.run(program(source=sources[-1]), case.graph, device="cpu", precision="single")
    check(np.array_equal(found[-1][2][field], judge[field]))
    add(work, case, table, statistics.mean(f[0] for f in found), statistics.mean(f[1] for f in found))

    def answer(source: int) -> sigps.Result:
        result = run(program(source=source), case.graph)
        result[field]  # crosses when it is first read
        return result

    answers = [timed(lambda s=s: answer(s), repeats) for s in sources]  # type: ignore[misc]
    whole, device = (statistics.mean(f[i] for f in answers) for i in (0, 1))
    add(f"{work}, on the host", case, table, whole, device)


def measure_wcc(case: Case, table: Table, repeats: int) -> None:
    """Time connected components."""
    whole, device, result = timed(lambda: run(WCC(), case.graph), repeats)
    check(np.array_equal(result["component"], sigps.run(WCC(), case.graph, device="cpu")["component"]))
    add("WCC", case, table, whole, device)


def measure_triangles(case: Case, table: Table, repeats: int) -> None:
    """Time counting the triangles of each vertex anew."""
    judge = sigps.run(Triangles(), case.graph, device="cpu")["triangles"]
    run(Triangles(), case.graph)

    def count() -> sigps.Result:
        forget_counts(case.graph)
        return run(Triangles(), case.graph)

    whole, device, result = timed(count, repeats)
    check(np.array_equal(result["triangles"], judge))
    add("Triangles", case, table, whole, device, triangles=result.aggregators["corners"] // 3)


def measure_kcore(case: Case, table: Table, repeats: int) -> None:
    """Time core numbers, which tests check."""
    whole, device, result = timed(lambda: run(KCore(), case.graph), repeats)
    add("KCore", case, table, whole, device, supersteps=result.supersteps)


def add(work: str, case: Case, table: Table, whole: float, device: float, **more: Any) -> None:
    """Add a row with what is wanted of it."""
    table.add_times(work, case.name, whole, device, wanted_ms=WANTED.get((work, case.scale)), **more)


MEASURES: dict[str, Callable[[Case, Table, int], None]] = {
    "pagerank": measure_pagerank,
    "bfs": measure_bfs,
    "sssp": measure_sssp,
    "wcc": measure_wcc,
    "triangles": measure_triangles,
    "kcore": measure_kcore,
    "by-hand": by_hand.compare,
    "memory": device_memory.measure,
    "cugraph": peer_cugraph.measure,
}
"""What `--only` chooses from, with `ALONE`; cuGraph comes last, which takes memory for itself."""

ALONE = ("grid", "master")
"""What is measured on graphs of its own."""


def measure_grid(size: int, table: Table, repeats: int) -> None:
    """Time a breadth-first search through a grid from its corner: a level for each diagonal."""
    graph = sigps.generate("grid", rows=size, columns=size)
    whole, device, result = timed(lambda: run(BFS(source=0), graph), repeats)
    i, j = np.indices((size, size))
    check(np.array_equal(result["level"], (i + j).ravel()))
    wanted = 60 if size == 4000 else None
    more = {"wanted_ms": wanted, "supersteps": result.supersteps}
    table.add_times("BFS", f"grid-{size}", whole, device, **more)


def make_kronecker(scale: int, folder: Path | None) -> Case:
    """Return a Kronecker graph with random weights, from a folder if it was kept there."""
    began = time.perf_counter()
    kept = folder and folder / f"kron-{scale}-weights"
    graph = kept_or_made(kept, lambda: sigps.generate("rmat", scale=scale, weights="random"))
    size = f"{graph.num_vertices:,} vertices, {graph.num_edges:,} edges"
    print(f"kron-{scale}: {size}, there in {time.perf_counter() - began:.0f} s", flush=True)
    candidates = np.flatnonzero(np.diff(graph.offsets) > 0)
    sources = np.random.default_rng(1).choice(candidates, 8).tolist()
    return Case(graph, f"kron-{scale}", scale, sources)


def main() -> None:
    """Run the benchmark that the arguments describe; exit with 1 where a measure failed."""
    given = arguments()
    table = Table(given.output, facts(given))
    failed = []
    for scale in given.scales if set(given.only) & set(MEASURES) else []:
        case = make_kronecker(scale, given.graphs)
        for name in given.only:
            if name in MEASURES:
                failed += attempt(f"{name} on {case.name}", MEASURES[name], case, table, given.repeats)
    if given.grid and "grid" in given.only:
        failed += attempt("grid", measure_grid, given.grid, table, given.repeats)
    if "master" in given.only:
        failed += attempt("master", measure_master, table, given.repeats)
    print(f"written to {given.output}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def attempt(name: str, measure: Callable[..., None], *given: Any) -> list[str]:
    """Measure, and return what failed: one that does, or whose answer is wrong, leaves the others their turn."""
    try:
        measure(*given)
    except Exception:
        traceback.print_exc()
        return [name]
    return []


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", type=numbers, default=[22, 24], help="as in 22,24")
    options.add_argument("--grid", type=int, default=4000, help="rows and columns; 0 for none")
    options.add_argument(
        "--only", type=rows, default=[*MEASURES, *ALONE], help=f"of {','.join([*MEASURES, *ALONE])}"
    )
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--graphs", type=Path, help="a folder to keep generated graphs in, for the next run")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    given.output = given.output or RESULTS / f"gpu-{gpu_name().lower().replace(' ', '-')}.json"
    return given


def numbers(text: str) -> list[int]:
    """Read whole numbers with commas between them."""
    return [int(part) for part in text.split(",") if part]


def rows(text: str) -> list[str]:
    """Read names of measures with commas between them, into the order in which they are measured."""
    known, chosen = [*MEASURES, *ALONE], text.split(",")
    unknown = set(chosen) - set(known)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no {', '.join(sorted(unknown))}; choose of {','.join(known)}"
        )
    return [name for name in known if name in chosen]


def facts(given: argparse.Namespace) -> dict[str, Any]:
    """Return what the rows are measured on."""
    driver = cupy.cuda.runtime.driverGetVersion()
    found = machine_facts("cuda-core") | {
        "gpu": gpu_name(),
        "cuda_driver": f"{driver // 1000}.{driver % 1000 // 10}",
        "driver": driver_version(),
        "repeats": given.repeats,
    }
    return found | {"commit": given.commit or found["commit"]}


def gpu_name() -> str:
    """Return what the first GPU is called."""
    name: bytes = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return name.decode()


if __name__ == "__main__":
    main()
