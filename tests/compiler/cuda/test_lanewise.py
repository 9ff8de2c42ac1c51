"""Loops over common neighbours divided among the lanes of a warp, run by 32 threads that wait for each other."""

from __future__ import annotations

import ast
import re
import textwrap
import threading
from typing import Any

import numpy as np
import pytest
from cells import program_of
from edge_programs import Loudest, Mirrors, Signs, Waves
from turns import in_turn

from sigps import Vertex
from sigps.apps import BiTriDN, TriDN
from sigps.compiler.cuda.lanewise import by_lanes, shares_all
from sigps.compiler.frontend.analysis import analyse

LANES = 32

FIELDS = """
n: State[int] = 0
k: Param[int] = 2
mark: EdgeState[int] = 0
"""


def program(body: str, start: str = "0, 0, False", k: int = 2) -> Vertex:
    look = f"n, most, hit = {start}\nfor one, other in self.common_neighbors(edge):\n{textwrap.indent(body, '    ')}"
    loop = (
        f"for edge in self.out_edges:\n{textwrap.indent(look, '    ')}\n    self.n += 10_000 * n + most + hit"
    )
    return program_of(f"{loop}\nself.vote_to_halt()", FIELDS, message="message=bool, directed=False", k=k)


def functions(made: Vertex, *, divided: bool) -> tuple[dict[str, Any], str]:
    """Return a program's functions as Python runs them, and their text."""
    derived = analyse(made)
    module = by_lanes(derived.module) if divided else derived.module
    names: dict[str, Any] = dict(derived.namespace)
    exec(compile(ast.parse(ast.unparse(module)), "<program>", "exec"), names)
    return names, ast.unparse(module)


class Lanes:
    """The functions of `warp_neighbors.cuh`, among threads in the place of lanes; found by sets, not by bisection."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(LANES, timeout=300)
        self._said: list[Any] = [None] * LANES
        self._own = threading.local()

    def names(self) -> dict[str, Any]:
        return {
            "__mark_row": self.begin,
            "__lanes_next": self.next,
            "__lanes_count": lambda holds: sum(self.all_say(bool(holds))),
            "__lanes_step": lambda step, value: self.all_say(value)[self._own.lane ^ (1 << step)],
        }

    def run(self, compute: Any, *given: Any) -> list[Any]:
        left: list[Any] = [None] * LANES

        def one(lane: int) -> None:
            self._own.lane = lane
            try:
                left[lane] = compute(*given)
            except BaseException as error:
                self._barrier.abort()
                left[lane] = error

        threads = [threading.Thread(target=one, args=(lane,)) for lane in range(LANES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return left

    def begin(self, *_: Any) -> None:
        self._own.walked = 0

    def next(
        self, targets: Any, _: Any, first: int, at: int, end: int, begin: int, other: int, stop: int
    ) -> Any:
        first, end, begin, stop = map(int, (first, end, begin, stop))
        mine, theirs = targets[first:end].tolist(), targets[begin:stop].tolist()
        while self._own.walked < len(mine):
            i = self._own.walked + self._own.lane
            self._own.walked += LANES
            holds = i < len(mine) and mine[i] in theirs and mine[i] not in mine[:i]
            if any(self.all_say(holds)):
                nothing = np.uint64(2**64 - 1)
                return (
                    (np.uint64(first + i), np.uint64(begin + theirs.index(mine[i])))
                    if holds
                    else (nothing, nothing)
                )
        return np.uint64(end), np.uint64(other)

    def all_say(self, value: Any) -> list[Any]:
        self._said[self._own.lane] = value
        self._barrier.wait()
        said = list(self._said)
        self._barrier.wait()
        return said


def next_common(
    targets: Any, _: Any, first: int, at: int, end: int, begin: int, other: int, stop: int
) -> Any:
    """Find one common neighbour after another."""
    mine, theirs = targets[int(first) : int(end)].tolist(), targets[int(begin) : int(stop)].tolist()
    for i in range(int(at) - int(first), len(mine)):
        if mine[i] in theirs and mine[i] not in mine[:i]:
            return np.uint64(int(first) + i), np.uint64(int(begin) + theirs.index(mine[i]))
    return np.uint64(end), np.uint64(other)


def arguments(made: Vertex, row_lengths: tuple[int, ...], seed: int) -> tuple[Any, ...]:
    """Return what compute() of vertex 0 takes: row 0 and those of its neighbours, whose edges keep drawn marks."""
    rng = np.random.default_rng(seed)
    rows = [np.sort(rng.integers(1, 150, n)) for n in row_lengths]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    targets = np.concatenate(rows).astype(np.uint32)
    row_of = rng.integers(1, len(rows), targets.size).astype(np.uint32)
    marks = rng.integers(0, 6, targets.size)
    links = row_of, offsets, targets, None, None, (marks.copy(),), (marks,)
    edges = np.uint64(0), offsets[1], targets, targets.astype(np.int64), (), links
    return (
        (0, 200, targets.size),
        (made.params["k"],),
        (),
        (0, rows[0].size, 0),
        (0.0, 0),
        (),
        False,
        edges,
        None,
    )


BODIES = {
    "a count": "if one.mark > other.mark:\n    n += 1",
    "until as many": "if one.mark >= 2 and other.mark >= 1:\n    n += 1\n    if n == self.k:\n        break",
    "until as many as the edge says": "n += 1\nif n == edge.mark:\n    break",
    "two counts": "if one.mark > 2:\n    n += 1\nelse:\n    hit += 1",
    "the most": "most = max(most, one.mark)\nif other.mark == 5:\n    hit = True",
    "some are left out": "if one.mark == 0:\n    continue\nn += 1\nif other.mark > most:\n    most = other.mark",
}


STARTS = ["0, 0, False", "3, 4, False"]


@pytest.mark.parametrize(
    ("name", "k", "start"), [*in_turn(BODIES, [2, 1000], STARTS), ("until as many", 1000, STARTS[0])]
)
def test_lanes_find_what_one_after_another_finds(name: str, k: int, start: str) -> None:
    if name == "two counts":
        start = start.replace("False", "0")
    made = program(BODIES[name], start, k)
    divided, text = functions(made, divided=True)
    assert "__lanes_next" in text
    assert "__next_common" not in text
    plain, _ = functions(made, divided=False)
    plain |= {"__mark_row": lambda *_: None, "__next_common": next_common}
    for seed, rows in enumerate([(40, 70, 90, 3), (5, 60, 33)]):
        given = arguments(made, rows, seed)
        lanes = Lanes()
        divided |= lanes.names()
        left = lanes.run(divided["compute"], *given)
        assert left == [plain["compute"](*given)] * LANES


@pytest.mark.parametrize(
    "body",
    [
        "n = n * 2 + one.mark",  # depends on the order
        "n += one.mark",  # may not fit
        "most = one.mark",  # the last one
        "n += 1\nif n == self.k:\n    break\nmost = max(most, one.mark)",  # of those before the break
        "if one.mark == 3:\n    break\nn += 1",
        "n += 1\nif n == most:\n    break\nmost = 4",  # the bound moves
        "n += 1\nmost = max(most, n)",
        "most = max(most, one.mark // other.mark)",  # may have no result
        "edge.mark = 3",
    ],
)
def test_what_lanes_do_not_divide(body: str) -> None:
    _, text = functions(program(body), divided=True)
    assert "__lanes_next" not in text
    assert "__next_common" in text


@pytest.mark.parametrize(
    ("made", "divided"),
    [(BiTriDN(), 2), (TriDN(), 2), (Waves(), 0), (Loudest(), 0), (Mirrors(), 0), (Signs(), 0)],
)
def test_of_which_programs(made: Vertex, divided: int) -> None:
    _, text = functions(made, divided=True)
    assert len(re.findall(r"__lanes_next\(", text)) == divided
    assert shares_all(analyse(made)) == (divided > 0)
