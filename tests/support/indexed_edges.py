"""A program that asks for edges by position, by draw and by target, on any engine."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import ComputeError, Graph, Vertex, run

__all__ = ["GRAPHS", "NO_SUCH", "assert_no_such_edge", "indexing"]

GRAPHS = ("complete_5", "grid", "skewed", "sparse_ids", "weight_ties", "isolated", "star_out")

FIELDS = """
t: State[int] = 0
h: State[int] = 0
n: State[int] = 0
def first(self):
    return self.out_edges[0].target
"""
BODY = """
if self.superstep == 0:
    if self.out_degree > 0:
        edge = self.random_edge()
        self.send(edge, self.id)
        last = self.out_edges[-1]
        self.send(last, 1000)
        k = self.out_degree // 2
        middle = self.out_edges[k]
        self.t = last.target % 100 + 100 * (self.out_edges[0].target % 100) + 10000 * (middle.target % 100)
        self.x = last.weight + 2 * self.out_edges[k].weight
        self.n = self.first()
    self.h = self.has_edge(self.id) + 2 * self.has_edge(self.id + 1) + 4 * self.has_edge(10**12)
else:
    self.n += 31 * (sum(messages) % 1000003)
    self.vote_to_halt()
"""


def indexing() -> Vertex:
    return program_of(BODY, FIELDS, message="message=int")


NO_SUCH = ("self.out_degree", "-1 - self.out_degree", "10**15", "self.id")


def assert_no_such_edge(at: str, device: str) -> None:
    line = f"self.x = self.out_edges[{at}].weight"
    with pytest.raises(ComputeError, match="no such out-edge") as caught:
        run(program_of(line), Graph.from_edges([0, 1, 2], [1, 2, 0]), device=device)  # type: ignore[arg-type]
    assert caught.value.source == line
