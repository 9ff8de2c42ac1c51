"""`num_neighbors` and `neighbor_links`: counted pair by pair, and a program that begins with them."""

from __future__ import annotations

import itertools
from typing import Any

from battery import Sample
from thread_group import ThreadGroup, run_ranks
from ways import Way

from sigps import Result, State, Vertex, neighbor_links, num_neighbors, run


def counted(sample: Sample) -> dict[Any, tuple[int, int]]:
    """Return the neighbours of each vertex, and the arcs among them, pair by pair."""
    arcs = {(s, t) for s, t in zip(sample.sources, sample.targets, strict=True) if s != t}
    if not sample.directed:
        arcs |= {(t, s) for s, t in arcs}
    near: dict[Any, set[Any]] = {
        v: set() for v in (*(sample.vertices or []), *sample.sources, *sample.targets)
    }
    for s, t in arcs:
        near[s].add(t)
        near[t].add(s)
    return {
        v: (len(own), sum((a, b) in arcs for a, b in itertools.permutations(own, 2)))
        for v, own in near.items()
    }


class Around(Vertex):
    """Keeps what it began with."""

    near: State[int] = num_neighbors
    links: State[int] = neighbor_links
    steps: State[int] = 3

    def compute(self, messages):
        self.steps += 1
        if self.superstep == 2:
            self.vote_to_halt()


def run_on(way: Way, program: Vertex, sample: Sample, **options: Any) -> Result:
    def run_rank(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), **way.options(), **options)

    return run_ranks(way.ranks, run_rank)[0]
