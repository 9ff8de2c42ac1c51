"""Streams of mixed batches in a loop on CPU cores, for as long as is wanted, with memory, files and threads watched.

    python scripts/bench/soak_updates.py --seconds 3600

A stream of each way in which results follow (monotone, first arrival, fixed rounds, local measures, full runs) takes
the same batches: inserts, deletes or both, of 1 to 3,000 edges, with a time window over them; some are refused. The
graph keeps its size: what was inserted long ago is deleted. Now and then each result is compared with that of a full
run on a graph built anew, and all streams are closed and opened again. Prints a row a time, and at the end what grew
between the first quarter, the warm-up left out, and the last. Ends with 1 if a result was wrong, or if something grew.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import sigps
from sigps.apps import BFS, CDLP, SSSP, WCC, KHop, Triangles

FIELDS = {
    "SSSP": "distance",
    "WCC": "component",
    "BFS": "level",
    "CDLP": "label",
    "Triangles": "triangles",
    "KHop": "hop",
}
MOST_GROWTH = 0.02
"""Memory may be so much more in the last quarter than in the first; files and threads may not be more at all."""


def main() -> None:
    """Run as long as the arguments say."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--scale", type=int, default=11)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--every", type=float, default=20, help="seconds between two rows")
    given = options.parse_args()
    soak = Soak(given.scale, given.threads)
    began = last = time.monotonic()
    rows: list[tuple[int, int, int]] = []
    while time.monotonic() - began < given.seconds:
        soak.step()
        if time.monotonic() - last >= given.every:
            last = time.monotonic()
            rows.append(taken())
            megabytes, files, threads = rows[-1]
            print(
                f"{last - began:>7.0f} s  {soak.batches:>8,} batches  {soak.checks:>6,} checked  {megabytes:>7,} KiB  "
                f"{files} files  {threads} threads",
                flush=True,
            )
    soak.close()
    sys.exit(verdict(rows, soak))


def taken() -> tuple[int, int, int]:
    """Return the KiB of memory that this process holds, its open files and its threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
    )


def verdict(rows: list[tuple[int, int, int]], soak: Soak) -> int:
    """Print what grew, and return the exit status."""
    rows = rows[len(rows) // 10 :]
    quarter = max(1, len(rows) // 4)
    if len(rows) < 4:
        print("too short to tell what grows")
        return 0
    is_wrong = False
    for at, name in enumerate(("memory, KiB", "files", "threads")):
        first, last = (
            statistics.median(row[at] for row in part) for part in (rows[:quarter], rows[-quarter:])
        )
        allowed = first * (1 + MOST_GROWTH) if at == 0 else first
        is_wrong |= last > allowed
        print(f"{name}: {first:,.0f} in the first quarter, {last:,.0f} in the last: {last / first - 1:+.1%}")
    print(f"{soak.batches:,} batches of each stream, {soak.paths} by path, {soak.checks:,} results compared")
    return int(is_wrong)


class Soak:
    """Streams that take the same batches.

    Args:
        scale: Of the first graph.
        threads: Threads of each stream.

    Attributes:
        batches: Taken by each stream.
        checks: Results that were compared.
        paths: How many results came by which path.
    """

    def __init__(self, scale: int, threads: int) -> None:
        self._first = sigps.generate("rmat", scale=scale, weights="random", seed=1)
        self._ids = np.asarray(self._first.ids)
        hub = int(self._ids[np.argmax(self._first.out_degrees())])
        self._programs: list[sigps.Vertex] = [
            SSSP(source=hub), WCC(), BFS(source=hub), CDLP(iterations=5), Triangles(), KHop(source=hub),
        ]  # fmt: skip
        self._draw, self._threads = np.random.default_rng(7), threads
        self.batches = self.checks = 0
        self.paths = {"incremental": 0, "full": 0}
        self._open()

    def _open(self) -> None:
        options: dict[str, Any] = {
            "device": "cpu",
            "threads": self._threads,
            "window": 40.0,
            "missing": "count",
        }
        self._streams = [sigps.stream(p, self._first, **options) for p in self._programs]
        self._time, self._newest = 0.0, [self._ids[:0]] * 2

    def close(self) -> None:
        """Close all streams."""
        for stream in self._streams:
            stream.close()

    def step(self) -> None:
        """Take a batch, and sometimes check, or open all streams anew."""
        self._time += 1
        self.batches += 1
        size = int(self._draw.choice([1, 1, 10, 100, 100, 1000, 3000]))
        kind = self._draw.choice(["inserts", "deletes", "both", "both"])
        ends = self._ids[self._draw.integers(0, self._ids.size, (2, size))]
        inserts = *ends, self._draw.integers(1, 256, size)
        first = self._first
        at = self._draw.integers(0, first.num_edges, min(size, 20))
        old = self._ids[np.searchsorted(first.offsets, at, side="right") - 1], self._ids[first.targets[at]]
        deletes = tuple(np.concatenate([one, other]) for one, other in zip(old, self._newest, strict=True))
        self._newest = [side[: size // 2] for side in ends]
        batch = sigps.Updates(
            None if kind == "deletes" else inserts,
            None if kind == "inserts" else deletes,
            times=None if kind == "deletes" else np.full(size, self._time),
        )
        for stream in self._streams:
            self.paths[stream.apply(batch).path] += 1
        if self.batches % 20 == 0:
            self._refuse()
        if self.batches % 50 == 0:
            self._check()
        if self.batches % 500 == 0:
            self.close()
            self._open()

    def _refuse(self) -> None:
        """Give each stream a batch that it cannot take."""
        for stream in self._streams:
            try:
                stream.apply(inserts=([0], [1], [1.5, 2.5]))
            except sigps.SigpsError:
                continue
            sys.exit("a batch of unequal lengths was taken")

    def _check(self) -> None:
        """Compare all results with those of graphs built anew."""
        for program, stream in zip(self._programs, self._streams, strict=True):
            table = stream.graph.to_arrow()
            columns = (table[name].to_numpy() for name in ("source", "target", "weight"))
            anew = sigps.Graph.from_edges(*columns, vertices=self._ids, directed=stream.graph.directed)
            name = FIELDS[type(program).__name__]
            expected = sigps.run(program, anew, device="cpu", threads=self._threads)
            if not np.array_equal(expected[name], stream.result[name]):
                sys.exit(
                    f"{type(program).__name__}: batch {self.batches} gives another result than a full run"
                )
            self.checks += 1


if __name__ == "__main__":
    main()
