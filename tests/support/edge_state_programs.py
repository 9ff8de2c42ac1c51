"""What several tests share of `test_edge_states`."""

from __future__ import annotations

import math
from typing import Any

from sigps import (
    EdgeState,
    Param,
    State,
    Vertex,
)


class Posts(Vertex, message=int, directed=False):
    """Counts on every edge, and sends what it counted by mail, more than there is room for at first."""

    kept: EdgeState[int] = 0
    x: State[int] = 0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.kept += 1
            self.send(edge, edge.kept)
        self.x = sum(messages)
        if self.superstep == 1:
            self.vote_to_halt()


class Unasked(Vertex, message=float):
    """Speaks of neighbours and of a reverse, and looks at neither."""

    x: State[float] = 0.0
    reverse: Param[bool] = False
    mode: Param[str] = "plain"

    def compute(self, messages: Any) -> None:
        if self.reverse:
            self.x = 1.0
        if self.mode == "triangles":
            for edge in self.out_edges:
                self.x += sum(1 for a, b in self.common_neighbors(edge))
        if self.superstep < 2:
            self.send_to_neighbors(1.0)
        self.x += sum(messages)
        self.vote_to_halt()


class Signs(Vertex, directed=False):
    """Writes a zero of another sign, which is another value."""

    d: EdgeState[float] = 0.0
    x: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.x = 0.0
        for edge in self.out_edges:
            edge.d = -0.0
            self.x += sum(math.copysign(1.0, b.d) for a, b in self.common_neighbors(edge))
        if self.superstep == 1:
            self.vote_to_halt()
