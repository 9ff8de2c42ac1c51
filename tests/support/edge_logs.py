"""Runs with values on edges that go on from a log with other ranks, on other devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from battery import Sample
from thread_group import ThreadGroup, run_ranks
from ways import assert_same

from sigps import Checkpoint, Result, Vertex, run

__all__ = ["LOGS", "assert_goes_on"]

LOGS = [
    ((2, "cuda"), (3, "cuda")),
    ((1, "cuda"), (2, "cuda")),
    ((3, "cuda"), (1, "cuda")),
    ((2, "cpu"), (3, "cuda")),
    ((3, "cuda"), (2, "cpu")),
    ((2, "python"), (3, "cuda")),
    ((2, "cuda"), (3, "python")),
]
"""Ranks and devices of a run that saves, and of the one that goes on."""


def assert_goes_on(
    program: type[Vertex], sample: Sample, first: tuple[int, str], second: tuple[int, str], folder: Path
) -> None:
    """Save after every superstep, and go on from the log of each."""
    whole = run(program(), sample.build(), device="python")

    def part(ranks: int, device: Any, **options: Any) -> Result:
        def work(group: ThreadGroup) -> Result:
            return run(program(), sample.build(group=group), device=device, partitioner="hash", **options)

        found: Result = run_ranks(ranks, work)[0]
        return found

    assert whole.supersteps > 1
    for stop in range(1, whole.supersteps):
        log = Checkpoint(folder / f"log{stop}", every=1)
        part(*first, checkpoint=log, max_supersteps=stop)
        assert_same(part(*second, checkpoint=log, resume=True), whole, exact=True)
