"""Time batches of updates on several ranks of CPU cores: a stream's `apply`, against `graph.apply` and a full run.

    PYTHONPATH=tests/support python scripts/bench/updates_on_ranks.py --scale 16 --grid 256

Ranks are threads of this process, each with one thread of its own, and times are processor time of all of them
together: so they do not depend on what else runs, nor on how fast messages cross, and do not say how soon a batch ends.
A stream and the two others take turns, every other time in the other order. Times are medians of `--repeats` batches,
after one that is not counted, since it copies rows. `of_full` is a stream's time as a part of the others'. Results are
compared. Prints a row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check
from thread_group import ThreadGroup, run_ranks
from updates import KINDS, random_edges

import sigps
from sigps.apps import BFS, CDLP, LCC, SSSP, WCC, HeatDiffusion, Triangles

PROGRAMS = {
    "SSSP": lambda source: SSSP(source=source),
    "WCC": lambda source: WCC(),
    "BFS": lambda source: BFS(source=source),
    "Triangles": lambda source: Triangles(),
    "LCC": lambda source: LCC(),
    "CDLP": lambda source: CDLP(),
    "HeatDiffusion": lambda source: HeatDiffusion(source=source, rate=1e-6),
}


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=int, default=16, help="of a Kronecker graph; 0: none")
    options.add_argument("--grid", type=int, default=256, help="rows and columns of a grid; 0: none")
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--programs", nargs="*", default=PROGRAMS)
    options.add_argument("--batches", type=int, nargs="*", default=[1, 1000, 30_000, 100_000])
    options.add_argument("--kinds", nargs="*", default=[*KINDS[:2]])
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--output", type=Path, default=RESULTS / "updates-ranks-cpu.json")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"repeats": given.repeats, "ranks": given.ranks})
    if given.scale:
        measure_all(
            lambda **o: sigps.generate("rmat", scale=given.scale, **o), f"kron-{given.scale}", given, table
        )
    if given.grid:
        sizes = {"rows": given.grid, "columns": given.grid}
        measure_all(lambda **o: sigps.generate("grid", **sizes, **o), f"grid-{given.grid}", given, table)


def measure_all(make: Callable[..., sigps.Graph], name: str, given: argparse.Namespace, table: Table) -> None:
    """Time all programs on a graph."""
    whole = make(weights="random")
    source = int(np.asarray(whole.ids)[np.argmax(whole.out_degrees())]) if name.startswith("kron") else 0
    for work in given.programs:
        program = PROGRAMS[work](source)
        for size in given.batches:
            for kind in given.kinds:
                numbers = np.random.default_rng(1)
                batches = [random_edges(whole)(size, kind, numbers) for _ in range(given.repeats + 1)]
                times, paths = measure(program, make, batches, given.ranks)
                of_full = round(times["stream_ms"] / (times["apply_ms"] + times["full_run_ms"]), 2)
                row = {"work": work, "graph": name, "batch": size, "kind": kind, **times, "of_full": of_full}
                row["incremental"] = paths.count("incremental")
                table.add(row, "  ".join(f"{what} {found}" for what, found in row.items()))


def is_same(full: Any, found: Any) -> bool:
    """Tell whether values are those of a full run; sums of floats may be added in another order there."""
    return np.array_equal(full, found) or (full.dtype.kind == "f" and np.allclose(full, found, 1e-9, 0))


def measure(
    program: sigps.Vertex, make: Callable[..., sigps.Graph], batches: list[Any], ranks: int
) -> tuple[dict[str, float], list[str]]:
    """Return processor milliseconds of all ranks together, by what took them, and the paths of batches that count."""

    def of(group: ThreadGroup) -> tuple[dict[str, list[float]], list[str]]:
        alone, options = make(weights="random", group=group), {"device": "cpu", "threads": 1}
        spent: dict[str, list[float]] = {}
        paths: list[str] = []

        def timed(what: str, work: Callable[..., Any], *work_given: Any, **more: Any) -> Any:
            group.barrier()
            began = time.process_time()
            done = work(*work_given, **more)
            group.barrier()
            spent.setdefault(what, []).append(time.process_time() - began)
            return done

        with sigps.stream(program, alone, **options) as live:
            for number, (inserts, deletes) in enumerate(batches):
                followed = (
                    [timed("stream_ms", live.apply, inserts=inserts, deletes=deletes)] if number % 2 else []
                )
                alone = timed("apply_ms", alone.apply, inserts, deletes)
                full = timed("full_run_ms", sigps.run, program, alone, **options)
                result = (followed or [timed("stream_ms", live.apply, inserts=inserts, deletes=deletes)])[0]
                paths.append(result.path)
                if group.rank == 0:  # which has the whole
                    key = next(iter(full.fields))
                    check(is_same(full[key], result[key]), "the result is not that of a full run")
        return spent, paths[1:]

    spent, paths = run_ranks(ranks, of)[0]
    return {what: round(statistics.median(found[1:]) * 1e3, 1) for what, found in spent.items()}, paths


if __name__ == "__main__":
    main()
