"""Time batches of updates: `graph.apply`, and results that follow, against full runs on the same version.

    python scripts/bench/updates.py --scale 18 --threads 2
    python scripts/bench/updates.py --device cuda --scale 22 --grid 4000
    python scripts/bench/updates.py --device cuda --scale 22 --on-gpu

Batches are inserts of random edges, deletes of random edges, and both; on a grid near the corner that is far from the
source. First a stream takes them one after another (`successive_ms`). On CPU cores another stream then takes turns with
`graph.apply` alone and the fastest full run on the version, whose arrays are laid out, so that each finds its caches
cold. On a GPU, where to lay a version out takes seconds, one stream takes all batches of a program, and full runs are
timed on the last version. It takes as many batches again for the part in which the GPU's rows change (`rows_ms`: from
the batch as it is given, the device waited for), and then the host's rows follow all these batches at once, when they
are read (`host_ms`, a batch). With `--on-gpu` batches lie in its memory when they are given. Times are medians of
`--repeats` batches, of which the first is not counted, and of full runs the least. Triangles are counted once a
version, so of these the first full run counts. Prints a row at a time, and writes a JSON file to
`scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table, check, synchronise

import sigps
from sigps.apps import BFS, CDLP, SSSP, WCC, Triangles

KINDS = ("inserts", "deletes", "both")
MANY = 100_000
"""Of more edges there are three batches of a kind, for one program on one graph."""
NEAR = 64
"""Rows and columns of a grid from the far corner in which edges change."""


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--scale", type=int, default=18, help="of a Kronecker graph; 0: none")
    options.add_argument("--grid", type=int, default=0, help="rows and columns of a grid; 0: none")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--batches", type=int, nargs="*", default=[1, 1000])
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--programs", nargs="*", help="names of classes; all, where there are none")
    options.add_argument("--on-gpu", action="store_true", help="batches are arrays in the memory of the GPU")
    options.add_argument("--commit", help="where there is no repository")
    options.add_argument("--output", type=Path, help="the JSON file")
    given = options.parse_args()
    on_cpu = given.device == "cpu"
    facts = machine_facts() | {"repeats": given.repeats}
    facts["commit"] = given.commit or facts["commit"]
    if on_cpu:
        facts["threads"] = given.threads
    else:
        from gpu import gpu_name

        facts |= {"gpu": gpu_name(), "driver": driver_version()}
    name = "cpu" if on_cpu else facts["gpu"].lower().replace(" ", "-")
    table = Table(given.output or RESULTS / f"updates-{name}.json", facts)
    if given.scale:
        graph = sigps.generate("rmat", scale=given.scale, weights="random")
        source = int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
        measure_all(graph, f"kron-{given.scale}", source, random_edges(graph), given, table)
    if given.grid:
        graph = sigps.generate("grid", rows=given.grid, columns=given.grid, weights="random")
        measure_all(graph, f"grid-{given.grid}", 0, corner_edges(given.grid), given, table)


def measure_all(
    graph: sigps.Graph,
    name: str,
    source: int,
    draw: Callable[..., Any],
    given: argparse.Namespace,
    table: Table,
) -> None:
    """Time all programs on a graph."""
    programs: tuple[tuple[sigps.Vertex, str], ...] = (
        (SSSP(source=source), "distance"),
        (WCC(), "component"),
        (BFS(source=source), "level"),
    )
    if given.device == "cuda":
        for program, key in asked((*programs, (Triangles(), "triangles")), given):
            measure_on_gpu(program, key, graph, name, draw, given, table)
        return
    for program, key in asked((*programs, (CDLP(), "label"), (Triangles(), "triangles")), given):
        for size in given.batches:
            for kind in KINDS:
                measure(program, key, graph, name, size, kind, draw, given, table)


def asked(
    programs: tuple[tuple[sigps.Vertex, str], ...], given: argparse.Namespace
) -> list[tuple[sigps.Vertex, str]]:
    """Return the programs that are to be timed."""
    return [of for of in programs if not given.programs or type(of[0]).__name__ in given.programs]


class Times:
    """Seconds by what took them.

    Args:
        wait: Called before the clock is read: waits for a device.
    """

    def __init__(self, wait: Callable[[], None] = lambda: None) -> None:
        self._wait = wait
        self.seconds: dict[str, list[float]] = {}

    def of(self, what: str, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Time a call; return what it returns."""
        began = time.perf_counter()
        done = work(*given, **options)
        self._wait()
        self.seconds.setdefault(what, []).append(time.perf_counter() - began)
        return done

    def medians(self) -> dict[str, float]:
        """Return milliseconds, the first ones left out."""
        return {what: round(statistics.median(found[1:]) * 1e3, 2) for what, found in self.seconds.items()}


def measure(
    program: sigps.Vertex,
    key: str,
    graph: sigps.Graph,
    name: str,
    size: int,
    kind: str,
    draw: Callable[..., Any],
    given: argparse.Namespace,
    table: Table,
) -> None:
    """Time batches of one kind on CPU cores."""
    options: dict[str, Any] = {"device": "cpu", "threads": given.threads}
    numbers = np.random.default_rng(1)
    batches = [draw(size, kind, numbers) for _ in range(given.repeats + 1)]
    times, paths = Times(), []
    with sigps.stream(program, graph, **options) as live:
        for inserts, deletes in batches:
            paths.append(times.of("successive_ms", live.apply, inserts=inserts, deletes=deletes).path)
    take_turns(program, key, graph, batches, options, times)
    about = {"work": type(program).__name__, "graph": name, "batch": size, "kind": kind}
    show(about, times.medians(), paths, table, "apply_and_run_ms")


def show(about: dict[str, Any], ms: dict[str, float], paths: list[str], table: Table, timed: str) -> None:
    """Add a row."""
    row = about | ms | {"times_faster": round(ms["full_run_ms"] / ms[timed], 1)}
    row["incremental"] = paths[1:].count("incremental")
    table.add(row, "  ".join(f"{what} {found}" for what, found in row.items()))


def measure_on_gpu(
    program: sigps.Vertex,
    key: str,
    graph: sigps.Graph,
    name: str,
    draw: Callable[..., Any],
    given: argparse.Namespace,
    table: Table,
) -> None:
    """Time batches of all kinds by one stream."""
    numbers = np.random.default_rng(1)
    batches = {
        (size, kind): [draw(size, kind, numbers) for _ in range(2 * repeats_of(size, given) + 1)]
        for size in given.batches
        for kind in KINDS
        if size <= MANY or (isinstance(program, SSSP) and name.startswith("kron"))
    }
    if given.on_gpu:
        batches = {of: [tuple(map(on_gpu, batch)) for batch in drawn] for of, drawn in batches.items()}
        synchronise()
    times, paths = {of: Times(wait=synchronise) for of in batches}, {of: list[str]() for of in batches}
    full = Times(wait=synchronise)

    def time_full_runs(version: sigps.Graph) -> None:
        for _ in range(6):
            full.of("full_run_ms", sigps.run, program, version, device="cuda")

    with sigps.stream(program, graph, device="cuda") as live:
        live.apply()
        check(
            live.graph.num_edges == graph.num_edges, "an empty batch changes the graph"
        )  # and the host has its rows
        for of, drawn in batches.items():
            if of[0] > MANY and not full.seconds:
                time_full_runs(live.graph)  # before the graph is much larger
            half = len(drawn) // 2 + 1
            for inserts, deletes in drawn[:half]:
                result = times[of].of("successive_ms", live.apply, inserts=inserts, deletes=deletes)
                paths[of].append(result.path)
                del result
            with rows_timed(live, times[of]):
                for inserts, deletes in drawn[half:]:
                    live.apply(inserts=inserts, deletes=deletes)
            began = time.perf_counter()
            check(live.graph.num_edges > 0, "the graph has no edges")
            times[of].seconds["host_ms"] = 2 * [(time.perf_counter() - began) / len(drawn)]
        found = sigps.run(program, live.graph, device="cuda")
        check(np.array_equal(found[key], live.result[key]), "the result is not that of a full run")
        del found
        if not full.seconds:
            time_full_runs(live.graph)
    least = round(min(full.seconds["full_run_ms"]) * 1e3, 2)
    for of in batches:
        about = {"work": type(program).__name__, "graph": name, "batch": of[0], "kind": of[1]}
        show(about, times[of].medians() | {"full_run_ms": least}, paths[of], table, "successive_ms")


def on_gpu(edges: Any) -> Any:
    """Return edges in the memory of the GPU; None of none."""
    import cupy

    return None if edges is None else tuple(map(cupy.asarray, edges))


def repeats_of(size: int, given: argparse.Namespace) -> int:
    """Return how many batches of a size are timed."""
    repeats: int = given.repeats
    return min(repeats, 3) if size > MANY else repeats


@contextlib.contextmanager
def rows_timed(live: sigps.Stream, times: Times) -> Iterator[None]:
    """Time the part of batches in which the rows on a GPU change, from the batch as it is given."""
    run: Any = live._live
    take, follow, began = run.laid_by, run.follow_ends, [0.0]

    def begin(*of: Any) -> Any:
        began[0] = time.perf_counter()
        return take(*of)

    def end(*of: Any) -> Any:
        found = follow(*of)
        synchronise()
        times.seconds.setdefault("rows_ms", []).append(time.perf_counter() - began[0])
        return found

    run.laid_by, run.follow_ends = begin, end
    yield
    del run.laid_by, run.follow_ends


def take_turns(
    program: sigps.Vertex,
    key: str,
    graph: sigps.Graph,
    batches: list[Any],
    options: dict[str, Any],
    times: Times,
) -> None:
    """Let a stream, `graph.apply` and full runs on the same versions take turns."""
    alone = graph
    with sigps.stream(program, graph, **options) as live:
        for inserts, deletes in batches:
            before = live.graph  # whose arrays for full runs are let go of after the batch
            result = times.of("apply_and_run_ms", live.apply, inserts=inserts, deletes=deletes)
            del before
            alone = times.of("apply_ms", alone.apply, inserts, deletes)
            version = live.graph
            version.in_edges()
            turns = Times()
            if not isinstance(program, Triangles):
                sigps.run(program, version, **options)
            for _ in range(1 if isinstance(program, Triangles) else 2):
                full = turns.of("full", sigps.run, program, version, **options)
            times.seconds.setdefault("full_run_ms", []).append(min(turns.seconds["full"]))
            check(np.array_equal(full[key], result[key]), "the result is not that of a full run")
            del full, result, version


def random_edges(graph: sigps.Graph) -> Callable[..., Any]:
    """Return what draws random edges to insert, and random edges of a graph to delete."""
    ids, offsets, targets = np.asarray(graph.ids), graph.offsets, graph.targets

    def draw(size: int, kind: str, numbers: np.random.Generator) -> tuple[Any, Any]:
        ends = ids[numbers.integers(0, ids.size, (2, size))]
        at = numbers.integers(0, targets.size, size)
        deletes = ids[np.searchsorted(offsets, at, side="right") - 1], ids[targets[at]]
        return of_kind(kind, (*ends, numbers.integers(1, 256, size)), deletes)

    return draw


def corner_edges(width: int) -> Callable[..., Any]:
    """Return what draws edges near the corner of a grid that is far from vertex 0, up to two rows and columns long."""

    def draw(size: int, kind: str, numbers: np.random.Generator) -> tuple[Any, Any]:
        (y, x), (up, left) = (
            numbers.integers(width - NEAR, width, (2, size)),
            numbers.integers(0, 3, (2, size)),
        )
        inserts = y * width + x, (y - up) * width + x - left, numbers.integers(1, 256, size)
        y, x = numbers.integers(width - NEAR, width - 1, (2, size))
        return of_kind(kind, inserts, (y * width + x, y * width + x + 1))

    return draw


def of_kind(kind: str, inserts: Any, deletes: Any) -> tuple[Any, Any]:
    """Return what of a batch its kind has."""
    return (None if kind == "deletes" else inserts), (None if kind == "inserts" else deletes)


if __name__ == "__main__":
    main()
