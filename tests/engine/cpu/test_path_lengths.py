"""Path lengths found at once: states are those of supersteps one by one, in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import run_cell

from sigps import Graph, Result, generate, run
from sigps.apps import SSSP
from sigps.engine import fixed_points

DRAW = np.random.default_rng(3)

RELAX = """
class Relax(Vertex, message=float):
    step: Param[float] = 1.0
    best: State[float] = inf
    other: State[int] = 7

    def compute(self, messages):
        received = ({first}) if self.superstep == 0 else min(messages, default=inf)
        if received < self.best:
            self.best = received
            {sends}
            for edge in self.out_edges:
                self.send(edge, self.best + edge.weight)
        self.vote_to_halt()
"""


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: Any) -> None:
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)


def drawn(weights: Any, *, num_vertices: int = 60, seed: int = 0, directed: bool = True) -> Graph:
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, num_vertices, (2, 3 * num_vertices)) * 3 + 5
    return Graph.from_edges(*ends, weights=draw.choice(weights, 3 * num_vertices), directed=directed)


def was_at_once(result: Result) -> bool:
    return [s.direction for s in result.stats][1:] == ["at once"]


def same_states(program: Any, graph: Graph, **options: Any) -> Result:
    found = run(program, graph, device="cpu", **options)
    expected = run(program, graph, device="python")
    for name in expected.fields:
        assert found[name].tolist() == expected[name].tolist(), name
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", [range(1, 256), [0, 1], [0, 0, 0, 5], [1, 2], [1000, 70_000]], ids=str)
def test_drawn_graphs(weights: Any, seed: int, threads: int) -> None:
    graph = drawn(list(weights), seed=seed, directed=seed % 2 == 0)
    for precision in ("double", "single"):
        source = int(graph.ids.to_oids(np.arange(1))[0])
        found = run(SSSP(source=source), graph, device="cpu", threads=threads, precision=precision)
        expected = run(SSSP(source=source), graph, device="python", precision=precision)
        assert was_at_once(found)
        assert found["distance"].tolist() == expected["distance"].tolist()
        assert found["parent"].tolist() == expected["parent"].tolist()


@pytest.mark.parametrize("name", [name for name in BATTERY if name != "empty"])
def test_battery(name: str) -> None:
    graph = BATTERY[name].build()
    same_states(SSSP(source=graph.ids.to_oids(np.arange(1)).tolist()[0]), graph)


def test_columns_of_whole_numbers() -> None:
    graph = drawn([1, 2, 3])
    for dtype in (np.uint8, np.int32, np.int64, np.float32):
        typed = Graph.from_edges(
            np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(int)),
            graph.targets,
            weights=graph.columns["weight"].astype(dtype),
        )
        assert was_at_once(same_states(SSSP(source=0), typed))


@pytest.mark.parametrize(
    "weights",
    [[0.5, 1.0], [1.0, 2.0**53 + 2], [1.0, 1e300], [3.0, 3.0]],
    ids=["halves", "beyond 2**53", "huge", "all equal"],
)
def test_lengths_that_may_be_rounded_go_by_supersteps(weights: list[float]) -> None:
    assert not was_at_once(same_states(SSSP(source=5), drawn(weights)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "weights", [[0.1, 0.7, 1.3], [1e-17, 1.0, 3e5, 0.0], [0.1, 1e307, 1.5e308], [5e-324, 1e-310]], ids=str
)
def test_real_lengths_without_parents(weights: list[float], seed: int) -> None:
    program = run_cell(RELAX.format(first="0.1 if self.id < 9 else inf", sends="pass"))["Relax"]()
    found = same_states(program, drawn(weights, seed=seed, directed=seed % 2 == 0), threads=1 + seed % 2)
    assert was_at_once(found)


@pytest.mark.parametrize(
    ("weights", "first"),
    [
        ([-0.1, 0.7], "0.1 if self.id < 9 else inf"),
        ([0.1, 0.7], "-0.5 if self.id < 9 else inf"),
        ([0.1, 0.7], "-0.0 if self.id < 9 else inf"),
        ([0.3, 0.3], "0.1 if self.id < 9 else inf"),
    ],
    ids=["weights below", "below", "minus zero", "equal"],
)
def test_other_real_lengths_go_by_supersteps(weights: list[float], first: str) -> None:
    program = run_cell(RELAX.format(first=first, sends="pass"))["Relax"]()
    graph = drawn(weights)
    if min(weights) < 0:  # without circles
        graph = Graph.from_edges(np.arange(60), np.arange(60) + 1, weights=np.resize(weights, 60))
    assert not was_at_once(same_states(program, graph))


def test_real_lengths_of_single_precision_go_by_supersteps() -> None:
    program = run_cell(RELAX.format(first="0.1 if self.id < 9 else inf", sends="pass"))["Relax"]()
    found, expected = (
        run(program, drawn([0.1, 0.7]), device=device, precision="single") for device in ("cpu", "python")
    )
    assert not was_at_once(found)
    assert found["best"].tolist() == expected["best"].tolist()


def test_negative_weights_go_by_supersteps() -> None:
    graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], weights=[5.0, 3.0, -4.0, 1.0])
    assert not was_at_once(same_states(SSSP(source=0), graph))


def test_a_length_beyond_what_is_exact_goes_by_supersteps() -> None:
    """Each weight is a whole number of single precision; the sum of two is not."""
    weights = [2.0**24, 1.0, 1.0, 3.0]
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 4], weights=weights)
    found, slow = (
        run(SSSP(source=0), graph, device=device, precision="single") for device in ("cpu", "python")
    )
    assert not was_at_once(found)
    assert found["distance"].tolist() == slow["distance"].tolist()


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("self.step", True),
        ("self.step if self.id < 20 else inf", True),
        ("0.5 if self.id == 5 else inf", False),
        ("-1.0 if self.id == 5 else inf", False),
    ],
)
def test_programs_begin_anywhere(first: str, expected: bool) -> None:
    program = run_cell(RELAX.format(first=first, sends="pass"))["Relax"]()
    assert was_at_once(same_states(program, drawn([1, 4, 9]))) is expected


def test_lengths_that_nobody_sent_go_by_supersteps() -> None:
    """Vertices keep their own number in superstep 0, and one alone sends it."""
    first = "1.0 * self.id"
    program = run_cell(RELAX.format(first=first, sends="if self.superstep == 0 and self.id != 5: return"))
    graph = drawn([1, 4, 9])
    found = run(program["Relax"](), graph, device="cpu")
    expected = run(program["Relax"](), graph, device="python", max_supersteps=len(found.stats))
    assert not was_at_once(found)
    assert found["best"].tolist() == expected["best"].tolist()


@pytest.mark.parametrize(
    "options",
    [{"asynchronous": False}, {"direction": "push"}, {"schedule": "edge"}, {"max_supersteps": 3}],
    ids=str,
)
def test_options_that_want_supersteps_get_them(options: dict[str, Any]) -> None:
    assert not was_at_once(run(SSSP(source=5), drawn([1, 2]), device="cpu", **options))


def test_hubs_go_by_supersteps() -> None:
    graph = Graph.from_edges([0] * 65, range(1, 66), weights=np.arange(65) % 7 + 1)
    assert not was_at_once(same_states(SSSP(source=0), graph))


def test_a_larger_mesh(monkeypatch: Any) -> None:
    """Many buckets, and returns of the loop in the middle of one."""
    from sigps.engine.cpu import path_lengths

    monkeypatch.setattr(path_lengths, "_MOST_WORK", 1000)
    graph = generate("grid", rows=70, columns=90, weights="random")
    found = run(SSSP(source=3000), graph, device="cpu")
    slow = run(SSSP(source=3000), graph, device="cpu", asynchronous=False)
    assert was_at_once(found)
    assert slow.supersteps > 100
    for name in ("distance", "parent"):
        assert found[name].tolist() == slow[name].tolist()
