"""Time the apps on CPU cores beside NetworKit and SciPy, in one run, on one Kronecker graph, with one thread count.

    pip install -e '.[bench]'
    python scripts/bench/cpu.py --scale 20 --threads 2

Every answer that is timed is checked against the peer's. A time is the median of `--repeats` whole calls with the
graph resident and code compiled; PageRank is the slope between 10 and 30 rounds, and NetworKit counts triangles
once. Prints a table, and writes a JSON file to `scripts/bench/results/` where all rows were measured: `--only` names
some.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import networkit
import numpy as np
import scipy.sparse.csgraph
from facts import RESULTS, machine_facts

import sigps
from sigps.apps import BFS, LCC, SSSP, WCC, KCore, PageRank, Triangles

ROWS = ("pagerank", "bfs", "wcc", "sssp", "kcore", "triangles", "lcc")


def main() -> None:
    """Run the benchmark that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=int, default=20)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--only", nargs="+", choices=ROWS, help="measure these rows, and write nothing")
    given = options.parse_args()
    networkit.setNumberOfThreads(given.threads)
    graph = sigps.generate("rmat", scale=given.scale, weights="random")
    matrix = graph.to_scipy()
    peer = as_networkit(matrix)
    source = int(np.argmax(np.diff(graph.offsets)))
    compare: dict[str, Callable[[], dict[str, Any]]] = {
        "pagerank": lambda: compare_pagerank(graph, matrix, peer, given),
        "bfs": lambda: compare_bfs(graph, peer, source, given),
        "wcc": lambda: compare_wcc(graph, peer, given),
        "sssp": lambda: compare_sssp(graph, matrix, source, given),
        "kcore": lambda: compare_kcore(graph, matrix, given),
        "triangles": lambda: compare_triangles(graph, peer, given),
        "lcc": lambda: compare_lcc(graph, peer, given),
    }
    report([compare[name]() for name in given.only or ROWS], graph, given)


def as_networkit(matrix: Any) -> Any:
    """Return the graph as NetworKit holds it: undirected, unweighted."""
    upper = scipy.sparse.triu(matrix, format="coo")
    ends = (upper.row.astype(np.uint64), upper.col.astype(np.uint64))
    return networkit.GraphFromCoo(
        (np.ones(upper.nnz), ends), n=matrix.shape[0], weighted=False, directed=False
    )


def compare_pagerank(graph: Any, matrix: Any, peer: Any, given: Any) -> dict[str, Any]:
    """Time one round, and check 10 rounds against SciPy's product."""

    def run(rounds: int) -> Any:
        return sigps.run(PageRank(iterations=rounds), graph, threads=given.threads, precision="single")

    few, many = median(lambda: run(10), given.repeats), median(lambda: run(30), given.repeats)
    check(np.allclose(run(10)["rank"], power_iteration(matrix, 10), rtol=1e-3))
    theirs = networkit.centrality.PageRank(peer, damp=0.85, tol=1e-9)
    theirs.maxIterations = 20
    seconds = median(theirs.run, max(1, given.repeats // 2))
    return row(
        "PageRank, a superstep", (many - few) / 20, "NetworKit", seconds / theirs.numberOfIterations(), 6
    )


def power_iteration(matrix: Any, rounds: int) -> Any:
    """Return PageRank by sparse products, with lost rank redistributed."""
    degrees = np.diff(matrix.indptr)
    pattern = scipy.sparse.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    size = matrix.shape[0]
    rank = np.full(size, 1 / size)
    for _ in range(rounds):
        share = pattern.T @ (rank / np.maximum(degrees, 1)) + rank[degrees == 0].sum() / size
        rank = 0.15 / size + 0.85 * share
    return rank


def compare_bfs(graph: Any, peer: Any, source: int, given: Any) -> dict[str, Any]:
    """Time a breadth-first search from a vertex of highest degree."""
    ours = median(lambda: sigps.run(BFS(source=source), graph, threads=given.threads), given.repeats)
    theirs = networkit.distance.BFS(peer, source, False)
    seconds = median(theirs.run, given.repeats)
    expected = np.array(theirs.getDistances())
    level = sigps.run(BFS(source=source), graph, threads=given.threads)["level"]
    reached = expected < 1e300
    check(np.array_equal(level >= 0, reached) and np.array_equal(level[reached], expected[reached]))
    return row("BFS", ours, "NetworKit", seconds, 6)


def compare_wcc(graph: Any, peer: Any, given: Any) -> dict[str, Any]:
    """Time connected components."""
    ours = median(lambda: sigps.run(WCC(), graph, threads=given.threads), given.repeats)
    theirs = networkit.components.ParallelConnectedComponents(peer, False)
    seconds = median(theirs.run, given.repeats)
    labels = sigps.run(WCC(), graph, threads=given.threads)["component"]
    check(len(np.unique(labels)) == theirs.numberOfComponents())
    return row("WCC", ours, "NetworKit", seconds, 5)


def compare_sssp(graph: Any, matrix: Any, source: int, given: Any) -> dict[str, Any]:
    """Time shortest paths with whole weights 1 to 255."""
    program = SSSP(source=source)  # whole distances below 2**24 are exact in float32
    options = {"threads": given.threads, "precision": "single"}
    ours = median(lambda: sigps.run(program, graph, **options), given.repeats)
    began = time.perf_counter()
    expected = scipy.sparse.csgraph.dijkstra(matrix, indices=source)
    seconds = time.perf_counter() - began
    check(np.array_equal(sigps.run(program, graph, **options)["distance"], expected))
    return row("SSSP", ours, "SciPy dijkstra", seconds, 5)


def compare_kcore(graph: Any, matrix: Any, given: Any) -> dict[str, Any]:
    """Time core numbers; a loop is no neighbour here, and NetworKit refuses loops."""
    ours = median(lambda: sigps.run(KCore(), graph, threads=given.threads), given.repeats)
    theirs = networkit.centrality.CoreDecomposition(as_networkit(scipy.sparse.triu(matrix, k=1)))
    seconds = median(theirs.run, given.repeats)
    check(np.array_equal(sigps.run(KCore(), graph, threads=given.threads)["core"], theirs.scores()))
    return row("KCore", ours, "NetworKit", seconds, 2)


def compare_triangles(graph: Any, peer: Any, given: Any) -> dict[str, Any]:
    """Time counting every vertex's triangles; NetworKit counts every edge's."""
    ours = median(lambda: counted_anew(Triangles(), graph, given), given.repeats)
    peer.indexEdges()
    theirs = networkit.sparsification.TriangleEdgeScore(peer)
    seconds = once(theirs.run)
    corners = sigps.run(Triangles(), graph, threads=given.threads).aggregators["corners"]
    check(corners == sum(theirs.scores()))
    return row("Triangles", ours, "NetworKit", seconds, 3)


def compare_lcc(graph: Any, peer: Any, given: Any) -> dict[str, Any]:
    """Time local clustering coefficients."""
    ours = median(lambda: counted_anew(LCC(), graph, given), given.repeats)
    peer.sortEdges()
    theirs = networkit.centrality.LocalClusteringCoefficient(peer, turbo=True)
    seconds = once(theirs.run)
    found = sigps.run(LCC(), graph, threads=given.threads)["coefficient"]
    check(np.allclose(found, theirs.scores(), rtol=1e-9))
    return row("LCC", ours, "NetworKit, turbo", seconds, 2)


def counted_anew(program: sigps.Vertex, graph: Any, given: Any) -> Any:
    """Run a program that begins with measures, which a graph keeps, as if for the first time."""
    graph._derived.pop("neighbourhoods", None)
    return sigps.run(program, graph, threads=given.threads)


def once(work: Callable[[], Any]) -> float:
    """Return the seconds of one call: this one takes many."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median(work: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of a call, after one that is not counted."""
    work()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def check(is_right: Any) -> None:
    """Stop where an answer that was timed is wrong."""
    if not is_right:
        raise SystemExit("the answer differs from the peer's; no time is reported")


def row(work: str, ours: float, peer: str, theirs: float, wanted: float) -> dict[str, Any]:
    """Return one line of the result."""
    return {
        "work": work,
        "sigps_ms": round(ours * 1e3, 2),
        "peer": peer,
        "peer_ms": round(theirs * 1e3, 2),
        "times_faster": round(theirs / ours, 1),
        "wanted": wanted,
    }


def report(rows: list[dict[str, Any]], graph: Any, given: Any) -> None:
    """Print the table and keep it with what it was measured on."""
    print(
        f"kron-{given.scale}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges, {given.threads} threads"
    )
    for r in rows:
        print(
            f"{r['work']:<22} {r['sigps_ms']:>9.1f} ms   {r['peer']:<15} {r['peer_ms']:>9.1f} ms"
            f"   {r['times_faster']:>6.1f}x (wanted {r['wanted']}x)"
        )
    if given.only:
        return
    facts = machine_facts("networkit", "scipy") | {
        "graph": {"kind": f"kron-{given.scale}", "vertices": graph.num_vertices, "edges": graph.num_edges},
        "threads": given.threads,
        "repeats": given.repeats,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"cpu-kron-{given.scale}.json"
    target.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"written to {target}")


if __name__ == "__main__":
    main()
