"""Vectors in a program: what is refused, with the line; what results look like; one meaning on every device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from cells import program_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sigps
from sigps import (
    CompileError,
    ComputeError,
    ConfigError,
    GraphError,
    Param,
    State,
    Vector,
    Vertex,
    VertexId,
    between,
    from_column,
    inf,
    run,
)

DEVICES = ["python", "cpu"]
GRAPH = sigps.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2])


class Fours(Vertex):
    """Each vertex keeps four numbers."""

    at: Param[int] = 0
    numbers: State[Vector[int, 4]] = (1, 2, 3, 4)
    found: State[int] = 0

    def compute(self, messages):
        self.found = self.numbers[self.at]
        self.numbers[self.at] = self.found * 2**self.id
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [0, 3, -1, -4])
def test_positions_count_from_both_ends(device: str, at: int) -> None:
    result = run(Fours(at=at), GRAPH, device=device)
    expected = [[1, 2, 3, 4] for _ in range(4)]
    for vertex, row in enumerate(expected):
        row[at] *= 2**vertex
    assert result["numbers"].tolist() == expected
    assert result["numbers"].dtype == np.int64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [4, -5, 2**40])
def test_a_position_that_is_not_there_is_an_error_with_its_line(device: str, at: int) -> None:
    with pytest.raises(ComputeError, match="the vector has no such position") as caught:
        run(Fours(at=at), GRAPH, device=device)
    assert "self.found = self.numbers[self.at]" in str(caught.value)


class Writes(Vertex):
    at: Param[int] = 0
    numbers: State[Vector[int, 4]] = 0

    def compute(self, messages):
        mine = self.numbers
        self.numbers[0] = len(mine)
        self.numbers[self.at] = 1
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [4, -5])
def test_nothing_is_written_where_there_is_no_position(device: str, at: int) -> None:
    with pytest.raises(ComputeError, match=r"no such position(.|\n)*self\.numbers\[self\.at\] = 1"):
        run(Writes(at=at), GRAPH, device=device)


class Overflows(Vertex):
    numbers: State[Vector[np.int8, 3]] = 100

    def compute(self, messages):
        self.numbers = self.numbers + self.id * 20
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_that_does_not_fit_is_an_error_with_its_line(device: str) -> None:
    with pytest.raises(ComputeError, match=r"self\.numbers = self\.numbers"):
        run(Overflows(), GRAPH, device=device)


class CopiesOnAssignment(Vertex):
    """What is assigned is a copy, and what a function gets, too."""

    one: State[Vector[int, 2]] = 1
    other: State[Vector[int, 2]] = 1
    sums: State[Vector[int, 2]] = 0

    def changed(self, vector):
        vector[0] = 50
        return sum(vector)

    def compute(self, messages):
        mine = self.one
        again = mine
        mine[0] = 7
        self.other = again
        self.sums[0] = self.changed(mine)
        self.sums[1] = sum(mine)
        again, mine = mine, again
        self.one = again * 10 + mine
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_assigned_is_a_copy(device: str) -> None:
    result = run(CopiesOnAssignment(), GRAPH, device=device)
    assert result["other"][0].tolist() == [1, 1]
    assert result["sums"][0].tolist() == [51, 8]
    assert result["one"][0].tolist() == [71, 11]


def program_with(statement: str, tmp_path: Any) -> Vertex:
    lines = [
        "import numpy as np",
        "from sigps import State, Vector, Vertex",
        "class P(Vertex, message=Vector[float, 3]):",
        "    v: State[Vector[float, 3]] = 1.0",
        "    n: State[Vector[int, 4]] = 0",
        "    x: State[float] = 0.0",
        "    def compute(self, messages):",
        f"        {statement}",
        "        self.send_to_neighbors(self.v)",
        "        self.vote_to_halt()",
    ]
    file = tmp_path / "program.py"
    file.write_text("\n".join(lines))
    names: dict[str, Any] = {"__name__": "program", "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), names)
    made: Vertex = names["P"]()
    return made


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("self.v = self.v + self.n", "different lengths: 3, 4"),
        ("self.v = self.n", r"Vector\[float, 3\] is given a vector of 4"),
        ("self.v = (1.0, 2.0)", "given 2 numbers"),
        ("self.x = self.v", "takes one number, and is given Vector"),
        ("self.n = self.n * 0.5", "write int"),
        ("self.x = self.v[3]", "a vector of 3 has no position 3"),
        ("self.x = self.v[0.5]", "a position is a whole number"),
        ("if self.v: pass", "neither true nor false"),
        ("if self.v == self.v: pass", "neither true nor false"),
        ("self.x = float(self.v)", "float.* takes one number"),
        ("self.v = max(self.v, self.v)", "np.maximum"),
        ("self.v = max(messages, default=self.v)", "np.maximum"),
        ("self.v[0:2] = (1.0, 2.0)", "one by one"),
        ("self.v = self.v[2:2]", "slice of a vector is empty"),
        ("self.v = self.v ** self.v[0] if self.n @ self.v else self.v", "different lengths"),
        ("w = Vector[float, 0](1.0)", "from 1 to"),
        ("w = Vector[str, 3](1.0)", "a vector has a type and a length"),
        ("w = Vector[float, 3]()", "takes a vector, a tuple of its numbers, or one number"),
        ("w = Vector[float, 'n'](1.0)", r"no length here: write Vector\[..., self\.n\]"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(statement: str, problem: str, tmp_path: Any) -> None:
    with pytest.raises(CompileError, match=problem) as caught:
        run(program_with(statement, tmp_path), GRAPH, device="cpu")
    assert caught.value.line == 8


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("Vector[float, 'n'](1.0)", r"no length here: write Vector\[..., self\.n\]"),
        ("Vector[float]", "a type and a length"),
        ("Vector[float, 2.5]", "whole number from 1 to"),
        ("Vector[list, 3]", "a type and a length"),
    ],
)
def test_no_such_type(written: str, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        eval(written)


class Weighs(Vertex, message=Vector[float, 3]):
    """Reads a parameter that is a vector as a whole, by position, over messages and along edges."""

    weights: Param[Vector[float, 3]] = (1.0, 0.5, inf)
    steps: Param[Vector[np.uint8, 2]] = between(1, 9, default=1)
    mine: State[Vector[float, 3]] = 2.0
    dot: State[float] = 0.0
    part: State[float] = 0.0

    def first(self):
        return self.weights[0]

    def compute(self, messages):
        self.mine = np.minimum(self.mine * self.weights, 100.0)
        self.dot = self.first() + self.mine[:2] @ self.weights[:2] + sum(m @ self.weights for m in messages)
        self.part = self.weights[int(self.id) % 3] + sum(self.steps)
        if self.superstep < self.steps[1]:
            for edge in self.out_edges:
                self.send(edge, self.weights + edge.weight)
        self.vote_to_halt()


class Spot(NamedTuple):
    place: Vector[float, 3]
    level: int = 0


class Moves(Vertex):
    """Locals that are NamedTuples of vectors, given as a number, as a tuple and as a vector."""

    total: State[float] = 0.0
    rest: State[float] = 0.0

    def compute(self, messages):
        spot = Spot(0.5) if self.id > 1 else Spot(Vector[float, 3]((1, 2, 3)), 2)
        self.total = sum(spot.place) + spot.level
        moved = spot._replace(place=2.0)
        self.rest = sum(moved.place * Spot((1, self.id, 3)).place) + moved.level
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_given_for_a_vector_of_a_tuple_is_a_vector(device: str) -> None:
    result = run(Moves(), GRAPH, device=device)
    assert result["total"].tolist() == [8.0, 8.0, 1.5, 1.5]
    assert result["rest"].tolist() == [2 * 4 + 2, 2 * 5 + 2, 2 * 6, 2 * 7]


class Squares(Vertex):
    """A table of products, row after row, and a vector of three times as many numbers."""

    rank: Param[int]
    products: State[Vector[int, "rank * rank"]] = 0  # noqa: F821, UP037
    thrice: State[Vector[np.uint8, "3 * rank"]] = 2  # noqa: F821, UP037

    def compute(self, messages):
        for i in range(self.rank):
            for k in range(self.rank):
                self.products[self.rank * i + k] = (i + 1) * (k + 1)
        self.products = self.products + Vector[int, self.rank * self.rank](1)
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_a_length_may_be_a_product(device: str) -> None:
    for rank in (2, 3):
        result = run(Squares(rank=rank), GRAPH, device=device)
        rows = [(i + 1) * (k + 1) + 1 for i in range(rank) for k in range(rank)]
        assert result["products"].tolist() == [rows] * 4
        assert result["thrice"].tolist() == [[2] * 3 * rank] * 4
    with pytest.raises(ConfigError, match=r"'rank \* rank'\]: the length of a vector is .*, and not 1600"):
        Squares(rank=40)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_parameter_may_be_a_vector(precision: Any) -> None:
    graph = sigps.Graph.from_edges([0, 1], [1, 2], weights=[1.0, 3.0])
    for weights, steps in (((1.0, 0.5, 4.0), (2, 2)), (np.array([0.25, 3, -1]), [1, 1])):
        results = [
            run(Weighs(weights=weights, steps=steps), graph, device=d, precision=precision) for d in DEVICES
        ]
        first, *_ = weights
        assert results[0]["part"].tolist() == [w + sum(steps) for w in weights]
        assert results[0]["dot"][0] == first + 2 * sum(w * w for w in weights[:2])
        for field in results[0].fields:
            assert results[0][field].tolist() == results[1][field].tolist(), field
    with pytest.raises(ConfigError, match="3 numbers, and this has 2"):
        Weighs(weights=(1.0, 2.0))
    with pytest.raises(ConfigError, match=r"holds 10 at position 1, not from 1 to 9"):
        Weighs(steps=(3, 10))
    assert list(Weighs().steps) == [1, 1]


WEIGHED = """
rank: Param[int] = 3
weights: Param[Vector[float, 'rank']] = 0.5
v: State[Vector[float, 'rank']] = 0.0
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("given", "rows"),
    [({}, [1, 1, 1]), ({"weights": (1, 2, 4)}, [2, 4, 8]), ({"rank": 2, "weights": [1, 0.5]}, [2, 1])],
)
def test_a_parameter_may_have_its_length_from_another(device: str, given: Any, rows: list[float]) -> None:
    program = program_of(
        "self.v = self.weights * 2.0\nself.x = sum(self.weights)\nself.vote_to_halt()", WEIGHED, **given
    )
    result = run(program, GRAPH, device=device)
    assert result["v"].tolist() == [rows] * 4
    assert result["x"].tolist() == [sum(rows) / 2] * 4


def test_a_parameter_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="3 numbers, and this has 2"):
        program_of("pass", WEIGHED, weights=(1, 2))
    with pytest.raises(
        ConfigError, match="the length of a vector is a whole number from 1 to 1024, and not 0"
    ):
        program_of("pass", WEIGHED, rank=0)
    with pytest.raises(CompileError, match="its default is one number for all, and not \\(1, 2\\)"):
        program_of("pass", "k: Param[int] = 2\nv: Param[Vector[float, 'k']] = (1, 2)")


NEIGHBORS = """
seeds: Param[Vector[VertexId, 2]]
least: State[Vector[VertexId, 2]] = -1
met: State[Vector[VertexId, 3]] = -1
near: State[bool] = False
"""
NEIGHBORS_BODY = """
if self.superstep == 0:
    self.near = self.id in self.seeds
    self.least = Vector[VertexId, 2](self.id)
    k = 0
    for edge in self.out_edges:
        self.met[k] = edge.target
        k += 1
for m in messages:
    self.least = np.minimum(self.least, m)
if self.superstep < 2:
    self.send_to_neighbors(self.least)
self.vote_to_halt()
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("names", [(3, 10, 11, 12, 13), ("a", "b", "c", "d", "e")])
def test_the_numbers_of_a_vector_may_be_ids(device: str, names: tuple[Any, ...], tmp_path: Any) -> None:
    a, b, c, d, e = names
    none = None if a == "a" else -1
    graph = sigps.Graph.from_edges([a, a, a, b], [b, c, d, e], directed=False)
    program = program_of(NEIGHBORS_BODY, NEIGHBORS, message="message=Vector[VertexId, 2]", seeds=(b, e))
    result = run(program, graph, device=device)
    met = [[b, c, d], [a, e, none], [a, none, none], [a, none, none], [b, none, none]]
    assert result["met"].tolist() == met
    assert result["least"].tolist() == [[a, a]] * 5
    assert result["near"].tolist() == [False, True, False, False, True]
    assert result.to_arrow()["met"].to_pylist() == met
    kept = run(program, graph, device=device, initial=result)
    assert kept["met"].tolist() == met
    result.write_csv(tmp_path / "ids.csv")
    assert "met.0,met.1,met.2" in (tmp_path / "ids.csv").read_text()
    seeds = (b, "zz" if a == "a" else 99)
    wrong = program_of(NEIGHBORS_BODY, NEIGHBORS, message="message=Vector[VertexId, 2]", seeds=seeds)
    with pytest.raises(GraphError, match=r"seeds=\): there is no vertex"):
        run(wrong, graph)


def test_no_number_of_a_vector_is_none() -> None:
    with pytest.raises(TypeError, match=r"Vector\[VertexId \| None, 3\]: .* such as -1"):
        Vector[VertexId | None, 3]


def test_a_default_of_another_length_is_refused() -> None:
    with pytest.raises(CompileError, match="3 numbers, and this has 2"):

        class P(Vertex):
            v: State[Vector[float, 3]] = (1.0, 2.0)


def test_results_are_rows_and_tables_have_lists(tmp_path: Any) -> None:
    result = run(Fours(at=1), GRAPH, device="cpu")
    assert result["numbers"].shape == (4, 4)
    table = result.to_arrow()
    assert str(table.schema.field("numbers").type) == "fixed_size_list<item: int64>[4]"
    assert table["numbers"].to_pylist() == result["numbers"].tolist()
    assert result.to_pandas()["numbers"].map(list).tolist() == result["numbers"].tolist()
    result.write_csv(tmp_path / "numbers.csv", ["numbers"])
    assert (tmp_path / "numbers.csv").read_text().splitlines()[:2] == [
        "id,numbers.0,numbers.1,numbers.2,numbers.3",
        "0,1,2,3,4",
    ]
    with pytest.raises(ConfigError, match="vectors of 4, which have no order"):
        result.top("numbers")


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_begin_with_rows(device: str) -> None:
    rows = np.arange(16).reshape(4, 4)
    result = run(Fours(), GRAPH, device=device, initial={"numbers": rows})
    assert result["found"].tolist() == [0, 4, 8, 12]
    with pytest.raises(ConfigError, match=r"shape \(4, 3\)"):
        run(Fours(), GRAPH, device=device, initial={"numbers": rows[:, :3]})


class AsLongAsK(Vertex, message=Vector[int, "k"]):
    """Of the last k ids in a chain, one a superstep."""

    k: Param[int] = 3
    last: State[Vector[int, "k"]] = -1  # noqa: UP037
    count = sigps.Aggregator.sum(Vector[int, "k"], persistent=True)

    def compute(self, messages):
        for m in messages:
            self.last = np.maximum(self.last, m)
        if self.superstep < self.k:
            self.last[self.superstep] = self.id
            self.count[self.superstep] += 1
            self.send_to_neighbors(self.last * 1 + Vector[int, self.k](0))
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_a_parameter_gives_the_length(device: str) -> None:
    two, three = (run(AsLongAsK(k=k), GRAPH, device=device) for k in (2, 3))
    assert two["last"].tolist() == [[0, -1], [1, 1], [2, 2], [3, 3]]
    assert three["last"][:, :2].tolist() == [[0, -1], [1, 1], [2, 2], [3, 3]]
    assert three["last"].shape == (4, 3)
    assert two.aggregators["count"].tolist() == [4, 3]


@pytest.mark.parametrize(("k", "problem"), [(0, "k=0: the length of a vector"), (5000, "from 1 to 1024")])
def test_a_parameter_that_is_no_length_is_refused(k: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        AsLongAsK(k=k)


def test_a_length_without_a_parameter_is_refused() -> None:
    class P(Vertex):
        v: State[Vector[float, "rank"]] = 0.0  # noqa: F821, UP037

        def compute(self, messages):
            self.vote_to_halt()

    with pytest.raises(ConfigError, match="there is no parameter 'rank'"):
        P()


NUMBERS = st.lists(st.floats(-1e3, 1e3) | st.just(float("nan")), min_size=5, max_size=5)
WHOLE = st.lists(st.integers(-9, 9), min_size=5, max_size=5)


class FromColumn(Vertex):
    numbers: State[Vector[np.int16, 3]] = from_column("triples", default=(7, 8, 9))

    def compute(self, messages):
        self.numbers[0] += 1
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_begin_with_a_vertex_column_of_rows(device: str) -> None:
    rows = np.arange(12).reshape(4, 3)
    result = run(FromColumn(), GRAPH.with_vertex_columns({"triples": rows}), device=device)
    assert result["numbers"].tolist() == [[1, 1, 2], [4, 4, 5], [7, 7, 8], [10, 10, 11]]
    assert result["numbers"].dtype == np.int16
    by_id = GRAPH.with_vertex_columns({"triples": {2: [5, 6, 7]}})
    assert run(FromColumn(), by_id, device=device)["numbers"].tolist()[1:3] == [[1, 0, 0], [6, 6, 7]]
    assert run(FromColumn(), GRAPH, device=device)["numbers"].tolist() == [[8, 8, 9]] * 4
    for column, says in (
        (rows[:, :2], r"rows of 2 numbers, and the state 'numbers' is Vector\[int16, 3\]"),
        (rows[:, 0], "one number a vertex, and the state 'numbers' is"),
        (rows * 10_000, "40000 is no whole number that int16 can hold"),
    ):
        with pytest.raises(ConfigError, match=says):
            run(FromColumn(), GRAPH.with_vertex_columns({"triples": column}), device=device)


class Multiplies(Vertex):
    """Of a long vector one product is beyond 64 bits, in the place that an id says."""

    numbers: State[Vector[int, 200]] = 2**31

    def compute(self, messages):
        factors = Vector[int, 200](3)
        factors[50 * self.id + 49] = 2**32
        self.numbers = self.numbers * factors
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_a_product_in_a_long_vector_that_does_not_fit_is_an_error(device: str) -> None:
    with pytest.raises(ComputeError, match=r"self\.numbers = self\.numbers \* factors"):
        run(Multiplies(), GRAPH, device=device)


class Powers(Vertex):
    numbers: State[Vector[np.uint8, 200]] = 0
    total: State[float] = 0.0

    def compute(self, messages):
        for i in range(200):
            self.numbers[i] = i
        self.total = sum(2.0**-self.numbers)
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_long_vectors(device: str) -> None:
    expected = sum(0.5**i for i in range(200))
    assert run(Powers(), GRAPH, device=device)["total"].tolist() == [expected] * 4


class Rules(Vertex):
    """Operators and functions of two vectors."""

    v: State[Vector[float, 5]] = 0.0
    n: State[Vector[int, 5]] = 0
    floats: State[Vector[float, 40]] = 0.0
    whole: State[Vector[int, 40]] = 0
    truths: State[Vector[bool, 5]] = False

    def compute(self, messages):
        v, n = self.v, self.n
        parts = (v + n, v - 1.5, 2.0 * v, v / n, v // n, v % n, np.sqrt(v), np.maximum(v, n))
        for k in range(8):
            for i in range(5):
                part = parts[0]
                if k == 1:
                    part = parts[1]
                if k == 2:
                    part = parts[2]
                if k == 3:
                    part = parts[3]
                if k == 4:
                    part = parts[4]
                if k == 5:
                    part = parts[5]
                if k == 6:
                    part = parts[6]
                if k == 7:
                    part = parts[7]
                self.floats[5 * k + i] = part[i]
        wide = (n + n, n * n, -n, abs(n), n & 3, n | 4, n << 2, np.minimum(n, 3))
        at = 0
        for w in wide:
            for x in w:
                self.whole[at] = x
                at += 1
        self.truths = v < n
        self.floats[0] = sum(v) + min(v) + max(v) + v @ v
        self.whole[0] = sum(n) * 100 + np.argmax(n) * 10 + np.argmin(n) + min(n) - max(n)
        if any(n > 3) and not all(n < 9) and 5 in n:
            self.whole[1] = 99
        self.vote_to_halt()


@given(NUMBERS, WHOLE)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_interpreter_and_compiled_code_compute_the_same(numbers: list[float], whole: list[int]) -> None:
    graph = sigps.Graph.from_edges([0], [1])
    initial = {"v": np.array([numbers, numbers[::-1]]), "n": np.array([whole, whole[::-1]])}
    python, cpu = (run(Rules(), graph, device=d, initial=initial) for d in DEVICES)
    for name in ("floats", "whole", "truths"):
        np.testing.assert_array_equal(cpu[name], python[name], err_msg=name)


@pytest.mark.parametrize("device", DEVICES)
def test_an_aggregator_of_vectors_takes_a_tuple_or_a_number(device: str) -> None:
    program = program_of(
        "self.t += (1.0, self.id)\nself.t += 0.5\nself.vote_to_halt()", "t = Aggregator.sum(Vector[float, 2])"
    )
    assert run(program, GRAPH, device=device).aggregators["t"].tolist() == [6.0, 8.0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("self.v = np.zeros(2)", r"np.zeros\(\) cannot be compiled: write Vector\[float, 2\]\(0.0\)"),
        ("self.v = [1.0, 2.0]", r"a vector is Vector\[float, 2\]\(\(x, y\)\)"),
        ("self.x = np.mean(self.v)", r"write sum\(v\) / len\(v\)"),
        ("self.x = np.linalg.norm(self.v)", r"write math.sqrt\(v @ v\)"),
        ("self.v = np.clip(self.v, 0, 1)", r"write np.minimum\(np.maximum\(v, low\), high\)"),
        (
            "for a, e in zip(self.v, self.out_edges):\n    self.x += a",
            r"zip\(\) takes tuples, vectors and range",
        ),
    ],
)
def test_what_arrays_have_and_vectors_not_is_named(body: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        run(program_of(body, "v: State[Vector[float, 2]] = 0.0"), GRAPH, device="cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_zip_runs_over_vectors(device: str) -> None:
    program = program_of(
        "w = self.v * 2.0\nfor a, b, i in zip(self.v, w, range(2)):\n    self.x += a * b + i\nself.vote_to_halt()",
        "v: State[Vector[float, 3]] = (1.0, 2.0, 4.0)",
    )
    assert run(program, GRAPH, device=device)["x"].tolist() == [11.0] * 4


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for a in self.spot.at:", 0 + 1 + 4),
        ("for a in m.at:", 0 + 2 + 6),
        ("for a in m.at * 2.0 - self.spot.at:", 0 + 3 + 8),
        ("for a in -m.at if self.id else m.at:", 0 - 2 - 6),
        ("for i, a in enumerate(m.at):", 0 + 2 + 6),
        ("for a, _ in zip(self.spot.at, m.at - self.spot.at):", 0 + 1 + 4),
    ],
)
def test_loops_run_over_vectors_of_records_and_messages(loop: str, expected: float, device: str) -> None:
    body = f"""
        for m in messages:
            k = 0
            {loop}
                self.x += k * a
                k += 1
        if self.superstep == 0:
            self.send_to_neighbors(Spot(self.spot.at + 1.0, 2))
        self.vote_to_halt()
    """
    before = "class Spot(NamedTuple):\n    at: Vector[float, 3]\n    level: int"
    spot = "spot: State[Spot] = Spot((0.0, 1.0, 2.0), 7)"
    program = program_of(body, spot, before=before, message="message=Spot")
    assert run(program, sigps.Graph.from_edges([0], [1]), device=device)["x"].tolist() == [0.0, expected]


def test_none_is_no_vector() -> None:
    with pytest.raises(CompileError, match="cannot begin as None: None is no vector"):

        class P(Vertex):
            v: State[Vector[float, 2]] = None
