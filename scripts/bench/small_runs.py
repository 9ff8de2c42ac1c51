"""Time what a small run takes, and the first answer of a process, in processor time.

    python scripts/bench/small_runs.py --device cpu --threads 2

A small run is a second one and later in its process, all included: `sigps.run` with the program made, until the result
is there. What is printed is the least and the median of `--repeats` runs; the least is the one to compare on a busy
machine. The first answer is that of fresh processes, from `import sigps` to the ranks of a small graph, with code
compiled before; Python's own bytecode is kept unless PYTHONDONTWRITEBYTECODE is set.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import networkx

import sigps
from sigps.apps import BFS, PageRank

_FIRST = """
import time
import sigps
from sigps.apps import PageRank
graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
sigps.run(PageRank(), graph, device={device!r})["rank"].sum()
print(time.process_time())
"""


def main() -> None:
    """Run the benchmark that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--threads", type=int)
    options.add_argument("--repeats", type=int, default=2000)
    options.add_argument("--processes", type=int, default=9)
    given = options.parse_args()
    path = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    ends = list(zip(*networkx.karate_club_graph().edges(), strict=True))
    club = sigps.Graph.from_edges(*ends, directed=False)
    how: dict[str, Any] = {"device": given.device, "threads": given.threads}
    works: dict[str, Callable[[], Any]] = {
        "BFS, a path of 5 vertices": lambda: sigps.run(BFS(source=0), path, **how),
        "PageRank, a club of 34": lambda: sigps.run(PageRank(), club, **how),
    }
    print(f"{'milliseconds':30}{'least':>8}{'median':>8}")
    for name, work in works.items():
        show(name, [timed(work) for _ in range(given.repeats + 10)][10:])
    first = _FIRST.format(device=given.device)
    outputs = [subprocess.check_output([sys.executable, "-c", first]) for _ in range(given.processes)]
    show("first answer of a process", [float(output) for output in outputs])


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that all threads of this process compute."""
    began = time.process_time()
    work()
    return time.process_time() - began


def show(name: str, seconds: list[float]) -> None:
    """Print a row."""
    print(f"{name:30}{min(seconds) * 1e3:8.3f}{statistics.median(seconds) * 1e3:8.3f}")


if __name__ == "__main__":
    main()
