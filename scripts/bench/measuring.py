"""What benchmarks share: a run on a GPU, its time, and a table that is kept while it grows."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sigps
import sigps.group

__all__ = [
    "Case",
    "Table",
    "WrongAnswer",
    "check",
    "kept_or_made",
    "median_and_best",
    "run",
    "synchronise",
    "timed",
]


class WrongAnswer(Exception):  # noqa: N818
    """What was timed did not give the expected result, so its time is not reported."""


@dataclass(frozen=True)
class Case:
    """A graph to measure on.

    Attributes:
        name: As in `kron-22`.
        scale: 22 in that.
        sources: Where searches begin: vertices with an edge.
    """

    graph: sigps.Graph
    name: str
    scale: int
    sources: list[int]


class Table:
    """Rows that are printed and written as they come: a run that is cut short keeps what it measured.

    Args:
        target: The JSON file.
        facts: What the rows were measured on.

    Attributes:
        rows: Those kept so far.
    """

    def __init__(self, target: Path, facts: dict[str, Any]) -> None:
        self.target, self.facts = target, facts
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any], text: str) -> None:
        """Keep a row, which names its `work` and `graph`, and print it as `text`."""
        self.rows.append(row)
        print(f"{row['graph']:<10} {row['work']:<22} {text}", flush=True)
        self._write()

    def note(self, name: str, fact: str) -> None:
        """Keep one more fact of what the rows are measured on."""
        self.facts[name] = fact
        self._write()

    def add_times(
        self, work: str, graph: str, whole: float, device: float, *, by: str = "sigps", **more: Any
    ) -> None:
        """Keep how long something took, in seconds, and what else is known of it."""
        times = {"whole_ms": round(whole * 1e3, 3), "device_ms": round(device * 1e3, 3)}
        told = "  ".join(f"{name} {value}" for name, value in more.items() if value is not None)
        self.add(
            {"work": work, "graph": graph, "by": by, **times, **more},
            f"{by:<8} {times['whole_ms']:>9.3f} ms whole {times['device_ms']:>9.3f} ms on the device  {told}",
        )

    def _write(self) -> None:
        written = self.target.with_suffix(".partial")
        written.write_text(json.dumps(self.facts | {"rows": self.rows}, indent=2) + "\n")
        written.replace(self.target)


def kept_or_made(kept: Path | None, make: Callable[[], sigps.Graph]) -> sigps.Graph:
    """Load what an earlier run kept; else make it, and keep it where a folder is named. All ranks call."""
    if kept is None:
        return make()
    if sigps.group.world().broadcast(kept.exists()):
        return sigps.load(kept)
    graph = make()
    kept.parent.mkdir(parents=True, exist_ok=True)
    graph.save(kept)
    return graph


def run(program: sigps.Vertex, graph: sigps.Graph) -> sigps.Result:
    """Run on the GPU in single precision, as the peers do."""
    return sigps.run(program, graph, device="cuda", precision="single")


def timed(work: Callable[[], sigps.Result], repeats: int) -> tuple[float, float, sigps.Result]:
    """Return the median seconds of a call, of its supersteps on the device, and the last result."""
    device: list[float] = []

    def call() -> sigps.Result:
        result = work()
        synchronise()
        return result

    def note(result: sigps.Result) -> None:
        device.append(sum(s.seconds for s in result.stats))

    whole, result = _repeated(call, repeats, note)
    return statistics.median(whole), statistics.median(device), result


def median_and_best(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the median and the least seconds of a call with the device idle before and after it."""

    def call() -> None:
        work()
        synchronise()

    seconds, _ = _repeated(call, repeats, lambda _: None)
    return statistics.median(seconds), min(seconds)


def synchronise() -> None:
    """Wait for the GPU."""
    import cupy

    cupy.cuda.Device().synchronize()


def _repeated(call: Callable[[], Any], repeats: int, note: Callable[[Any], None]) -> tuple[list[float], Any]:
    """Time a call that waits for the device, after one that is not counted."""
    call()
    seconds, result = [], None
    for _ in range(repeats):
        synchronise()
        began = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - began)
        note(result)
    return seconds, result


def check(is_right: Any, what: str = "the answer differs from the CPU engine's") -> None:
    """Stop the measurement at hand where it would be one of something wrong."""
    if not is_right:
        raise WrongAnswer(f"{what}; no time is reported")
