"""How values on edges are put into what crosses, and for how many there is room."""

from __future__ import annotations

from typing import Any

import numpy as np
from value_programs import VALUES

from sigps import EdgeState, State, Vector, Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.crossing_plan import Entry, bytes_to_cross, entries_at_a_time, entry_of


class Several(Vertex, directed=False):
    """Reads narrow and wide values of the other end, and has one that nobody reads there."""

    seen: EdgeState[bool] = False
    own: EdgeState[int] = 0
    at: EdgeState[Vector[np.int32, 3]] = 0
    far: EdgeState[float] = 0.0
    total: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.own = self.superstep
            if edge.reverse.seen:
                self.total += edge.reverse.at[0] + edge.reverse.far
        self.vote_to_halt()


def test_values_lie_as_their_words_are_aligned() -> None:
    assert entry_of(analyse(Several(), "double")) == Entry((28, None, 16, 8), 32)
    assert entry_of(analyse(VALUES["own"], "double")).places == (None,)


def test_room_is_for_all_that_cross_or_a_part() -> None:
    program = analyse(Several(), "double")
    assert [entries_at_a_time(most, 2) for most in (0, 5, 1 << 20, 1 << 25)] == [0, 5, 1 << 20, 1 << 21]
    entries = 50 * 32  # of each of two others; three lists are made, and two arrive
    assert bytes_to_cross(program, 100, 10, 3) == 5 * entries + 3 * 8 * 11 + 4 * 32 + 4 * 8
    assert bytes_to_cross(program, 100, 10, 1) == 0
    assert bytes_to_cross(analyse(VALUES["own"], "double"), 100, 10, 3) == 32 + 4 * 8
