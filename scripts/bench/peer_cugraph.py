"""cuGraph on the same graph in the same run, through `pylibcugraph`, in its fast setting.

That is: int32 ids, renumbered, resident, RMM's pool for what a call allocates, and the graph stored the way round
that the algorithm wants. Vertices without an edge are not in its graph. A time is that of the whole call.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from measuring import Case, Table, median_and_best, run
from roof import shares_of_roof

from sigps.apps import BFS, SSSP, WCC

NAME = "cuGraph"

POOL_BYTES = 1 << 35
NEVER = 1e-30
"""A tolerance that single precision does not reach, so that all iterations are done."""

FEW, MANY = 10, 60


def why_missing() -> str:
    """Tell why cuGraph is not measured here; empty where it can be."""
    if importlib.util.find_spec("pylibcugraph") is None:
        return "pylibcugraph is not installed"
    try:
        import pylibcugraph  # noqa: F401
        import rmm  # noqa: F401
    except (ImportError, OSError) as error:
        return f"pylibcugraph cannot be imported: {error}"
    return ""


def measure(case: Case, table: Table, repeats: int) -> None:
    """Time PageRank, BFS, SSSP and WCC; says so and measures nothing where cuGraph is missing."""
    missing = why_missing()
    if missing:
        table.note("cugraph", missing)
        print(f"{case.name:<10} {NAME} is not measured: {missing}", flush=True)
        return
    peer, _ = _started()
    table.note("cugraph", str(peer.__version__))
    measure_pagerank(case, table, repeats)
    measure_searches(case, table, repeats)


def measure_pagerank(case: Case, table: Table, repeats: int) -> None:
    """Time an iteration as the slope between few and many of them."""
    peer, handle = _started()
    made = graph_of(case, weighted=False, store_transposed=True)

    def rounds(count: int) -> Any:
        options = {"fail_on_nonconvergence": False}
        return peer.pagerank(handle, made, None, None, None, None, 0.85, NEVER, count, False, **options)

    _, ranks, has_converged = rounds(MANY)
    few, many = (median_and_best(lambda n=n: rounds(n), repeats) for n in (FEW, MANY))  # type: ignore[misc]
    slope, best = ((b - a) / (MANY - FEW) for a, b in zip(few, many, strict=True))
    agrees = not has_converged and abs(float(ranks.sum(dtype=cupy.float64)) - 1) < 1e-2
    more = {"best_ms": round(best * 1e3, 3), "agrees": agrees, "dtype": str(ranks.dtype)}
    more |= shares_of_roof(case.graph.num_vertices, case.graph.num_edges, slope)
    table.add_times("PageRank, a superstep", case.name, slope, slope, by=NAME, **more)


def measure_searches(case: Case, table: Table, repeats: int) -> None:
    """Time searches as means over the sources, and components; compare them with what sigps finds on the GPU."""
    peer, handle = _started()
    made = graph_of(case, weighted=True, store_transposed=False)
    starts = {s: cupy.array([s], dtype=cupy.int32) for s in case.sources}
    last = case.sources[-1]

    def bfs(source: int) -> Any:
        distances, _, vertices = peer.bfs(handle, made, starts[source], True, -1, False, False)
        return vertices, distances

    def sssp(source: int) -> Any:
        vertices, distances, _ = peer.sssp(handle, made, source, np.inf, True, False)
        return vertices, distances

    def wcc(_: int) -> Any:
        return peer.weakly_connected_components(handle, made, None, None, None, None, False)

    levels = run(BFS(source=last), case.graph)["level"]
    distances = run(SSSP(source=last), case.graph)["distance"]
    components = run(WCC(), case.graph)["component"]
    searches: list[tuple[str, Callable[[int], Any], list[int], Callable[..., bool]]] = [
        ("BFS", bfs, case.sources, lambda v, d: agree(levels, levels >= 0, v, d)),
        ("SSSP", sssp, case.sources, lambda v, d: agree(distances, np.isfinite(distances), v, d)),
        ("WCC", wcc, [last], lambda v, c: np.unique(components[v]).size == np.unique(c).size),
    ]
    for work, call, sources, rule in searches:
        found = [median_and_best(lambda s=s, c=call: c(s), repeats) for s in sources]  # type: ignore[misc]
        seconds, best = (statistics.mean(times) for times in zip(*found, strict=True))
        agrees = bool(rule(*(cupy.asnumpy(part) for part in call(last))))
        more = {"best_ms": round(best * 1e3, 3), "agrees": agrees}
        table.add_times(work, case.name, seconds, seconds, by=NAME, **more)


def agree(ours: Any, is_reached: Any, vertices: Any, theirs: Any) -> bool:
    """Compare distances where there is a path; elsewhere the two say so differently."""
    at = is_reached[vertices]
    return bool(at.sum() == is_reached.sum() and np.array_equal(ours[vertices][at], theirs[at]))


def graph_of(case: Case, *, weighted: bool, store_transposed: bool) -> Any:
    """Return the graph as cuGraph holds it; what sigps has freed of the device's memory goes back first."""
    peer, handle = _started()
    graph = case.graph
    cupy.get_default_memory_pool().free_all_blocks()
    ids = np.arange(graph.num_vertices, dtype=np.int32)
    sources = cupy.asarray(np.repeat(ids, np.diff(graph.offsets).astype(np.int64)))
    targets = cupy.asarray(graph.targets.astype(np.int32))
    made = peer.SGGraph(
        handle,
        peer.GraphProperties(is_symmetric=True, is_multigraph=False),
        sources,
        targets,
        weight_array=cupy.asarray(graph.columns["weight"].astype(np.float32)) if weighted else None,
        store_transposed=store_transposed,
        renumber=True,
        do_expensive_check=False,
    )
    cupy.cuda.Device().synchronize()
    return made


@functools.cache
def _started() -> tuple[Any, Any]:
    """Return pylibcugraph and a handle, with RMM's pool in place: memory from before it would be lost."""
    import pylibcugraph
    import rmm

    rmm.reinitialize(pool_allocator=True, initial_pool_size=POOL_BYTES)
    return pylibcugraph, pylibcugraph.ResourceHandle()
