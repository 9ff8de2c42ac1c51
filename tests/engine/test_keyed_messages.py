"""Messages read by key: all ways to run, and to go on after a save, give what the interpreter gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import RANDOM
from battery import BATTERY, NAMES
from engines import compiled, interpreted
from graphs import busy_graph, samples
from hypothesis import given
from keyed_programs import KEYED, Orders, Pulls, Tables, Votes
from snapshots import ending
from turns import in_turn
from ways import WAYS, Way, assert_all_equal

from sigps import Graph, State, Vertex, run
from sigps.engine.interpreter.messages import Messages

SMALL = [n for n in NAMES if n not in ("string_ids", "skewed")]
FEW = [Way(threads=2), Way(2, partitioner="hash", deterministic=True), Way(3, device="python")]


@pytest.mark.parametrize(
    ("graph", "program", "ways"),
    [
        *in_turn(SMALL, KEYED, [FEW]),
        *[("skewed", *case) for case in in_turn(KEYED, [WAYS[::2], WAYS[1::2]])],
    ],
)
def test_a_program_by_key_gives_the_same_in_every_way(graph: str, program: str, ways: list[Way]) -> None:
    assert_all_equal(KEYED[program], BATTERY[graph], ways)


@pytest.mark.parametrize("program", ["votes", "pulls", "tables", "answers"])
@RANDOM
@given(sample=samples())
def test_random_graphs(program: str, sample: Any) -> None:
    assert_all_equal(KEYED[program], sample, [Way(threads=2)])


def test_many_messages_of_one_vertex() -> None:
    graph = busy_graph()
    for program in (Votes(), Pulls(), Tables(ceiling=4), Orders()):
        judge = run(program, graph, device="python")
        result = run(program, graph, device="cpu", threads=2)
        for name in judge.fields:
            np.testing.assert_array_equal(result[name], judge[name], err_msg=name)


class Census(Vertex, message=int):
    """Distinct keys, far more than fit a short run, that arrive in no order."""

    keys: State[int] = 0
    total: State[int] = 0
    ascends: State[bool] = True
    most: State[int] = -1

    def compute(self, messages):
        last = -(2**62)
        for key, group in messages.grouped():
            self.ascends = self.ascends and key > last
            last = key
            self.keys += 1
            self.total += key * len(group)
        self.most = messages.most_common(default=0)
        if self.superstep == 0:
            self.send_to_neighbors((self.id * 7919) % 977 - 400)
        self.vote_to_halt()


@pytest.mark.parametrize("count", [1, 11, 12, 13, 24, 25, 47, 48, 49, 500, 3000])
def test_lists_of_every_length_are_sorted(count: int) -> None:
    sources = np.arange(1, count + 1)
    graph = Graph.from_edges(sources, np.zeros(count, dtype=int))
    keys = (sources * 7919) % 977 - 400
    result = run(Census(), graph, device="cpu")
    values, counts = np.unique(keys, return_counts=True)
    found = {name: result[name][0] for name in result.fields}
    expected = {"keys": values.size, "total": keys.sum(), "ascends": True, "most": values[np.argmax(counts)]}
    assert found == expected


@pytest.mark.parametrize(
    ("name", "makers", "which"),
    in_turn(
        KEYED,
        [(compiled, compiled), (compiled, interpreted), (interpreted, compiled)],
        ["skewed", "parallel_edges_undirected"],
        times=2,
    ),
)
def test_another_engine_goes_on(name: str, makers: tuple[Any, Any], which: str) -> None:
    first, second = makers
    program, graph = KEYED[name], BATTERY[which].build()
    whole = ending(interpreted(program, graph, deterministic=True), program, 12)
    for stop in range(1, len(whole[2])):
        before = first(program, graph, deterministic=True)
        before.lease(stop)
        after = second(program, graph, deterministic=True)
        after.restore(before.save())
        fields, aggregators, ran, _ = ending(after, program, 12 - stop)
        for field, values in fields.items():
            np.testing.assert_array_equal(values, whole[0][field], err_msg=f"{field} {stop}")
        assert (aggregators, ran) == (whole[1], whole[2][stop:])


def test_what_the_interpreter_reads() -> None:
    messages = Messages([3, -1, 3, 2, 2, -1])
    assert [(k, list(g)) for k, g in messages.grouped()] == [(-1, [-1, -1]), (2, [2, 2]), (3, [3, 3])]
    assert [(k, list(g)) for k, g in messages.grouped(lambda m: m % 2)] == [(0, [2, 2]), (1, [3, -1, 3, -1])]
    assert messages.most_common() == -1
    assert messages.most_common(weight=lambda m: m) == 3
    assert messages.most_common(lambda m: m % 2, lambda m: -1.0) == 0
    assert messages.most_common(lambda m: m, lambda m: float("nan") if m > 2 else 1.0) == -1
    assert Messages().most_common(default=8) == 8
    with pytest.raises(ValueError, match="default"):
        Messages().most_common()
    with pytest.raises(TypeError, match="whole number"):
        Messages([1.5]).most_common()


class Overflowing(Vertex, message=int):
    """The weights of one key leave 64 bits."""

    most: State[int] = 0

    def compute(self, messages):
        self.most = messages.most_common(key=lambda m: 1, weight=lambda m: m, default=0)
        if self.superstep == 0:
            self.send_to_neighbors(2**62)
        self.vote_to_halt()


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_sum_of_weights_beyond_64_bits_is_an_error(device: str) -> None:
    from sigps import ComputeError

    graph = Graph.from_edges([1, 2, 3], [0, 0, 0])
    with pytest.raises(ComputeError, match="vertex 0"):
        run(Overflowing(), graph, device=device)
