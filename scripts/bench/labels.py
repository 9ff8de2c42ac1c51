"""Time label votes: `messages.most_common()`, and a loop that counts one label after another.

    python scripts/bench/labels.py --device cpu --threads 2 --scales 14 16

The programs take turns; on CPU cores a time is that of the processor, which does not count what others do on them, and
with several threads is that of all. It is the shortest of `--repeats` whole runs of ten rounds, of which the first turn
is not counted. All must give the labels of `CDLP`. Prints a row at a time, and writes a JSON file to
`scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check

import sigps
from sigps import Param, State, Vertex, VertexId
from sigps.apps import CDLP, WeightedLabels

ROUNDS = 10


class OneByOne(Vertex, message=VertexId, directed=False):
    """`CDLP` without `most_common()`: looks at all messages once for each label that may still win."""

    iterations: Param[int] = ROUNDS
    label: State[VertexId] = -1

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Take the most frequent label, and pass it on."""
        if self.superstep == 0:
            self.label = self.id
        else:
            label = min(messages, default=self.label)
            left = len(messages)
            most = 0
            while left > most:
                count = sum(1 for m in messages if m == label)
                if count > most:
                    self.label = label
                    most = count
                left -= count
                label = min((m for m in messages if m > label), default=label)
        if self.superstep < self.iterations:
            self.send_to_neighbors(self.label)
        else:
            self.vote_to_halt()


def circles() -> sigps.Graph:
    """As many vertices and edges as the ego networks of Twitter have, most of them within circles."""
    draw = np.random.default_rng(1)
    num_vertices, num_edges, num_circles = 81_306, 1_768_149, 900
    circle = draw.integers(0, num_circles, num_vertices)
    members = np.argsort(circle, kind="stable")
    begins = np.searchsorted(circle[members], np.arange(num_circles + 1))
    popular = (num_vertices * draw.random(num_edges) ** 2.5).astype(int)
    sources = draw.permutation(num_vertices)[popular]
    own = circle[sources]
    inside = begins[own] + (draw.random(num_edges) * (begins[own + 1] - begins[own])).astype(int)
    anybody = draw.integers(0, num_vertices, num_edges)
    return sigps.Graph.from_edges(sources, np.where(draw.random(num_edges) < 0.7, members[inside], anybody))


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--threads", type=int, default=None)
    options.add_argument("--scales", type=int, nargs="*", default=[14, 16])
    options.add_argument(
        "--most-one-by-one", type=int, default=4_000_000, help="edges up to which that is run"
    )
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--output", type=Path, default=RESULTS / "labels.json", help="the JSON file")
    given = options.parse_args()
    facts = machine_facts() | {"device": given.device, "threads": given.threads, "repeats": given.repeats}
    table = Table(given.output, facts)
    measure(circles(), "circles", given, table)
    for scale in given.scales:
        measure(sigps.generate("rmat", scale=scale, seed=1), f"kron-{scale}", given, table)


def measure(graph: sigps.Graph, name: str, given: argparse.Namespace, table: Table) -> None:
    """Time the programs on a graph."""
    programs: list[Vertex] = [CDLP(iterations=ROUNDS), WeightedLabels(iterations=ROUNDS)]
    programs += [OneByOne()] if graph.num_edges <= given.most_one_by_one else []
    limits: dict[str, Any] = {} if given.threads is None else {"threads": given.threads}
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    best = dict.fromkeys(range(len(programs)), float("inf"))
    labels, messages = None, 0
    for turn in range(given.repeats + 1):
        for i, program in enumerate(programs):
            began = clock()
            result = sigps.run(program, graph, device=given.device, **limits)
            seconds = clock() - began
            found = np.asarray(result["label"])
            labels = found if labels is None else labels
            check(np.array_equal(found, labels), f"{type(program).__name__}: other labels")
            messages = sum(s.messages for s in result.stats)
            best[i] = min(best[i], seconds) if turn else best[i]
    for i, program in enumerate(programs):
        row = {
            "work": type(program).__name__,
            "graph": name,
            "ms": round(best[i] * 1e3, 2),
            "messages": messages,
        }
        text = f"{row['ms']:>9.2f} ms  {best[i] / messages * 1e9:>7.3f} ns a message"
        table.add(row, text)


if __name__ == "__main__":
    main()
