"""Time what programs can say: vectors, deterministic sums, loops over messages, hubs, checked arithmetic.

    python scripts/bench/features.py --device cuda --scale 20

Each row is the shortest of `--repeats` runs after one, whole and of one superstep. What compares two ways of one
program stands side by side: vectors and numbers, deterministic and plain, checked and wrapping. Prints a row at a time,
and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table

import sigps
from sigps import EdgeState, Param, State, Vector, Vertex, wrapping
from sigps.apps import BiTriDN, MinimumSpanningForest, PageRank


class Ranks(Vertex, message=float):
    """PageRank by numbers."""

    rank: State[float] = 1.0
    iterations: Param[int] = 12

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Take the neighbours' shares, and give one's own."""
        if self.superstep > 0:
            self.rank = 0.15 + 0.85 * sum(messages)
        if self.superstep < self.iterations:
            self.send_to_neighbors(self.rank / max(self.out_degree, 1))
        else:
            self.vote_to_halt()


class SixteenRanks(Vertex, message=Vector[float, 16]):
    """Sixteen personalised PageRanks at once."""

    rank: State[Vector[float, 16]] = 1.0
    iterations: Param[int] = 12

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """As `Ranks`, number by number."""
        if self.superstep > 0:
            self.rank = 0.15 + 0.85 * sum(messages)
        if self.superstep < self.iterations:
            self.send_to_neighbors(self.rank / max(self.out_degree, 1))
        else:
            self.vote_to_halt()


class Registers(Vertex, message=Vector[np.uint8, 64]):
    """The greatest of each of 64 registers."""

    registers: State[Vector[np.uint8, 64]] = 0
    iterations: Param[int] = 8

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Keep the greatest."""
        if self.superstep == 0:
            self.registers[self.id % 64] = self.id % 200
        for m in messages:
            self.registers = np.maximum(self.registers, m)
        if self.superstep < self.iterations:
            self.send_to_neighbors(self.registers)
        self.vote_to_halt()


class Checked(Vertex, message=int):
    """Sums of whole numbers, where one that does not fit would end the run."""

    n: State[int] = 1

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Add up."""
        self.n = sum(messages) % 1_000_003 + self.id * 31
        if self.superstep < 12:
            self.send_to_neighbors(self.n)
        else:
            self.vote_to_halt()


class Wrapping(Vertex, message=np.uint64):
    """The same modulo 2**64."""

    n: State[np.uint64] = 1

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Add up."""
        self.n = sum(messages) % np.uint64(1_000_003) + np.uint64(wrapping(self.id * 31))
        if self.superstep < 12:
            self.send_to_neighbors(self.n)
        else:
            self.vote_to_halt()


class EdgeMarks(Vertex, message=int, directed=False):
    """Values on edges, written by one vertex in 1,024 after superstep 0: what is committed is theirs, or all."""

    mark: EdgeState[int] = 0
    seen: State[int] = 0

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Write to one's edges, and stay awake."""
        if self.superstep == 0 or self.id % 1024 == 0:
            for edge in self.out_edges:
                edge.mark = self.superstep
        self.seen += 1
        if self.superstep > 0 and (self.id % 1024 != 0 or self.superstep >= 12):
            self.vote_to_halt()


class Offer(NamedTuple):
    """A price, and whose it is."""

    price: float
    seller: int


class BestOffer(Vertex, message=Offer):
    """The best message with what comes with it, by a loop that combines."""

    seller: State[int] = -1
    price: State[float] = 0.0

    def compute(self, messages):  # type: ignore[no-untyped-def]
        """Take the best."""
        best, seller = 1e9, -1
        for m in messages:
            if m.price < best:
                best, seller = m.price, m.seller
        if seller >= 0:
            self.seller, self.price = seller, best
        if self.superstep < 10:
            for edge in self.out_edges:
                self.send(edge, Offer(edge.weight + self.price, self.id))
        else:
            self.vote_to_halt()


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--scale", type=int, default=14)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--output", type=Path, default=RESULTS / "features.json", help="the JSON file")
    given = options.parse_args()
    facts = machine_facts() | {"device": given.device, "repeats": given.repeats}
    table = Table(given.output, facts)
    graph = sigps.generate("rmat", scale=given.scale, seed=1, directed=False)
    name = f"kron-{given.scale}"

    def clock(
        work: str, program: Vertex, graph: sigps.Graph = graph, name: str = name, **options: Any
    ) -> None:
        whole = superstep = float("inf")
        for turn in range(given.repeats + 1):
            began = time.perf_counter()
            result = sigps.run(program, graph, device=given.device, **options)
            seconds = time.perf_counter() - began
            inner = [s.seconds for s in result.stats][1:-1] or [s.seconds for s in result.stats]
            if turn:
                whole, superstep = min(whole, seconds), min(superstep, min(inner))
        row = {
            "work": work,
            "graph": name,
            "ms": round(whole * 1e3, 3),
            "superstep_ms": round(superstep * 1e3, 4),
        }
        table.add(row, f"{row['ms']:>10.3f} ms whole {row['superstep_ms']:>9.4f} ms a superstep")

    clock("ranks", Ranks(), precision="single")
    clock("sixteen ranks", SixteenRanks(), precision="single")
    clock("sixteen ranks, deterministic", SixteenRanks(), precision="single", deterministic=True)
    clock("64 registers", Registers())
    clock("marks on edges of few vertices", EdgeMarks())
    clock("checked sums", Checked())
    clock("wrapping sums", Wrapping())
    clock("best offer", BestOffer())
    for deterministic in (False, True):
        kind = "deterministic" if deterministic else "plain"
        clock(f"PageRank {kind}", PageRank(iterations=12), deterministic=deterministic)
    weighted = sigps.generate("rmat", scale=given.scale, seed=1, directed=False, weights="random")
    clock("MST", MinimumSpanningForest(), weighted)
    small = sigps.generate("rmat", scale=min(given.scale, 14), seed=1, directed=False)
    clock("BiTriDN", BiTriDN(), small, f"kron-{min(given.scale, 14)}")


if __name__ == "__main__":
    main()
