"""States that begin with vertex columns of the graph: the same on every device and for every number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cells import program_of
from thread_group import ThreadGroup, run_ranks
from ways import Way

from sigps import (
    Checkpoint,
    CompileError,
    ConfigError,
    Graph,
    GraphError,
    Param,
    State,
    StateLogError,
    Vertex,
    from_column,
    run,
)
from sigps.cli import main as cli
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse


class Weighted(Vertex, message=float):
    """Each vertex adds up what its in-neighbours have, times the number of rounds that it wants."""

    rounds: Param[int] = 3
    have: State[float] = from_column("have")
    wants: State[int] = from_column("wants")
    bonus: State[np.int16] = from_column("bonus", default=7)
    total: State[float] = 0.0

    def compute(self, messages):
        self.total += self.wants * sum(messages) + self.bonus
        if self.superstep < self.rounds:
            self.send_to_neighbors(self.have)
        else:
            self.vote_to_halt()


N = 40
RNG = np.random.default_rng(5)
SOURCES, TARGETS = RNG.integers(0, N, 150), RNG.integers(0, N, 150)
HAVE, WANTS = RNG.integers(0, 100, N) / 4, RNG.integers(-5, 5, N)


def graph(group: ThreadGroup | None = None, **more: Any) -> Graph:
    """Return a graph with ids -10, -7, ... that has the columns."""
    oids = np.arange(N) * 3 - 10
    columns = {"have": HAVE, "wants": WANTS, **more}
    return Graph.from_edges(oids[SOURCES], oids[TARGETS], vertices=oids, vertex_columns=columns, group=group)


def expected(bonus: Any = 7) -> Any:
    heard = np.bincount(TARGETS, HAVE[SOURCES], N)
    return 3 * WANTS * heard + 4 * np.broadcast_to(bonus, N)


WAYS = [
    Way(device="python"),
    Way(direction="push"),
    Way(direction="pull", threads=2),
    Way(2, partitioner="hash"),
    Way(3, partitioner="bfs", direction="push"),
    Way(2, device="python", partitioner="vertices"),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_states_begin_with_columns(way: Way) -> None:
    def on_rank(group: ThreadGroup) -> Any:
        plain = run(Weighted(), graph(group), **way.options())
        other = run(Weighted(), graph(group, bonus={-10: 2}), **way.options())
        return plain["total"], other["total"], plain["bonus"].dtype

    plain, other, dtype = run_ranks(way.ranks, on_rank)[0]
    np.testing.assert_allclose(plain, expected(), rtol=1e-12)
    np.testing.assert_allclose(other, expected([2] + [0] * (N - 1)), rtol=1e-12)
    assert dtype == np.int16


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_states_begin_with_columns_on_a_gpu(direction: Any) -> None:
    found = run(Weighted(), graph(), device="cuda", direction=direction)
    np.testing.assert_allclose(found["total"], expected(), rtol=1e-12)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_initial_takes_a_columns_place(device: str) -> None:
    ones = Graph.from_edges(SOURCES, TARGETS, vertices=np.arange(N), vertex_columns={"wants": WANTS})
    found = run(Weighted(), ones, device=device, initial={"have": HAVE})
    np.testing.assert_allclose(found["total"], expected(), rtol=1e-12)
    found = run(Weighted(), ones, device=device, initial={"have": {3: 1.0}})
    assert found["have"].tolist() == [1.0 if v == 3 else 0.0 for v in range(N)]


@pytest.mark.parametrize("directed", ["directed=False", "both_ways=True"])
def test_programs_that_turn_the_graph(directed: str) -> None:
    fields = "a: State[int] = from_column('a')"
    program = program_of(
        "self.a += 1\nself.vote_to_halt()", fields, message=f"message=int, {directed}", before=IMPORT
    )
    given = Graph.from_edges([3, 1], [2, 3], vertex_columns={"a": [10, 20, 30]})
    assert run(program, given, device="cpu")["a"].tolist() == [11, 21, 31]


IMPORT = "from sigps import from_column, EdgeState"


class Woken(Vertex, message=int):
    """Monotone where nobody is awake: then every vertex halts in superstep 0."""

    awake: State[bool] = False
    least: State[int] = 1000

    def compute(self, messages):
        best = self.id if self.superstep == 0 else min(messages, default=1000)
        if best < self.least:
            self.least = best
            self.send_to_neighbors(best)
        if self.superstep > 0 or not self.awake:
            self.vote_to_halt()


def test_no_claim_rests_on_a_default_that_was_replaced() -> None:
    assert analyse(Woken()).monotone is not None
    path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    given = {"awake": [True, False, False, True]}
    judge = run(Woken(), path, device="python", initial=given)
    for direction in ("push", "pull"):
        found = run(Woken(), path, device="cpu", direction=direction, initial=given)  # type: ignore[arg-type]
        assert found["least"].tolist() == judge["least"].tolist()
        assert [s.active for s in found.stats] == [s.active for s in judge.stats]
    assert judge["least"].tolist() == [0, 0, 0, 0]
    assert judge.stats[1].active == 4  # the vertex 0 has no messages


def test_what_a_class_says_is_shown() -> None:
    text = explain(Weighted)
    assert "have: float from the vertex column 'have'" in text
    assert "bonus: int16 from the vertex column 'bonus'" in text
    assert [f.varies for f in analyse(Weighted()).states] == [True, True, True, False]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, GraphError, r"Weighted.have begins with the vertex column 'have', .* it has: none"),
    ({"hav": WANTS}, GraphError, "it has: hav; did you mean 'hav'.*with_vertex_columns"),
    ({"have": HAVE, "wants": HAVE}, ConfigError, "the vertex column 'wants': .* is no whole number"),
    ({"have": np.zeros((N, 3)), "wants": WANTS}, ConfigError, "'have' has rows of 3 numbers"),
    ({"have": HAVE, "wants": WANTS, "bonus": WANTS + 40000}, ConfigError, "no whole number that int16"),
]


@pytest.mark.parametrize(("columns", "error", "says"), WRONG)
@pytest.mark.parametrize("device", ["python", "cpu"])
def test_columns_that_do_not_fit(columns: Any, error: type[Exception], says: str, device: str) -> None:
    given = Graph.from_edges(SOURCES, TARGETS, vertices=np.arange(N), vertex_columns=columns)
    with pytest.raises(error, match=says):
        run(Weighted(), given, device=device)


WRONG_CLASSES = [
    ("a: EdgeState[int] = from_column('a')", "from_column.* is a column of vertices|is a column of vertices"),
    ("a: State[int] = from_column('a', default=1.5)", "cannot begin as 1.5"),
    ("a: State[np.uint8] = from_column('a', default=256)", "cannot begin as 256"),
]


@pytest.mark.parametrize(("fields", "says"), WRONG_CLASSES)
def test_classes_that_cannot_begin_so(fields: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        program_of("self.vote_to_halt()", fields, before=IMPORT)


def test_a_log_is_of_the_columns_that_the_program_reads(tmp_path: Path) -> None:
    def go(given: Graph, resume: bool = True, **options: Any) -> Any:
        return run(
            Weighted(rounds=5),
            given,
            device="cpu",
            checkpoint=Checkpoint(tmp_path, every=2),
            resume=resume,
            **options,
        )

    whole = go(graph(), resume=False)["total"].tolist()
    assert go(graph(unused=np.arange(N)))["total"].tolist() == whole
    with pytest.raises(StateLogError, match="another graph"):
        go(graph(have=HAVE + 1))
    with pytest.raises(StateLogError, match="another graph"):
        go(graph(bonus={-10: 2}))
    with pytest.raises(StateLogError, match="another graph"):
        go(graph(), initial={"have": HAVE})


def test_a_log_is_of_what_the_run_gave(tmp_path: Path) -> None:
    def go(values: Any, resume: bool = True) -> Any:
        checkpoint = Checkpoint(tmp_path, every=2)
        return run(
            Weighted(rounds=5),
            graph(),
            device="cpu",
            checkpoint=checkpoint,
            resume=resume,
            initial={"have": values},
        )

    whole = go(HAVE, resume=False)["total"].tolist()
    assert go(HAVE)["total"].tolist() == whole
    with pytest.raises(StateLogError, match="other values of initial="):
        go(HAVE + 1)


def test_ranks_go_on_from_a_log(tmp_path: Path) -> None:
    def on_rank(group: ThreadGroup, resume: bool) -> Any:
        checkpoint = Checkpoint(tmp_path, every=2)
        return run(Weighted(), graph(group), device="cpu", checkpoint=checkpoint, resume=resume)["total"]

    run_ranks(2, lambda group: on_rank(group, False))
    np.testing.assert_allclose(run_ranks(3, lambda group: on_rank(group, True))[0], expected(), rtol=1e-12)


JOB = """
program: program.py:Sum
graph: {path: edges.txt, vertices: people.csv}
engine: {device: cpu}
output: {path: out.csv, fields: [age]}
"""
PROGRAM = """
from sigps import State, Vertex, from_column

class Sum(Vertex, message=int):
    age: State[int] = from_column("age")

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.age)
        self.age += sum(messages)
        self.vote_to_halt()
"""


def test_a_job_names_a_file_of_vertices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"job.yaml": JOB, "program.py": PROGRAM, "edges.txt": "1 2\n2 3\n", "people.csv": PEOPLE}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cli.execute(["run", str(tmp_path / "job.yaml")]) == 0
    assert (tmp_path / "out.csv").read_text().split() == ["id,age", "1,40", "2,90", "3,110"]
    store = str(tmp_path / "g.sigps")
    monkeypatch.chdir(tmp_path)
    assert cli.execute(["convert", "edges.txt", store, "--opt", "vertices=people.csv"]) == 0
    capsys.readouterr()
    assert cli.execute(["info", store]) == 0
    assert "vertex columns age int64, height float64" in capsys.readouterr().out
    assert cli.execute(["convert", store, "h.txt"]) == 0
    assert "vertex columns not written: age, height" in capsys.readouterr().out
    assert cli.execute(["convert", store, "h.txt", "--vertices", "h.csv"]) == 0
    assert "not written" not in capsys.readouterr().out
    assert (tmp_path / "h.csv").read_text() == PEOPLE
    assert cli.execute(["run", "job.yaml", "--set", "graph.vertices=nobody.csv"]) != 0
    assert "nobody.csv" in capsys.readouterr().err
    assert cli.execute(["run", "job.yaml", "--set", "graph.vertex_columns={age: years}"]) != 0
    assert "'years', but the columns are id, age, height" in capsys.readouterr().err
    assert cli.execute(["plan", "job.yaml"]) == 0
    listed = [
        "--set",
        "graph.vertices=1..4",
        "--set",
        "program=sigps.apps:OutDegree",
        "--set",
        "output.fields=[degree]",
    ]
    assert cli.execute(["run", "job.yaml", *listed]) == 0
    assert (tmp_path / "out.csv").read_text().split() == ["id,degree", "1,1", "2,1", "3,0", "4,0"]
    assert cli.execute(["plan", "job.yaml", *listed]) == 0
    capsys.readouterr()
    assert cli.execute(["info", "edges.txt", "--opt", "vertices=1..4"]) == 0
    assert "vertices       4\n" in capsys.readouterr().out


PEOPLE = "id,age,height\n1,40,1.5\n2,50,1.75\n3,60,1.9\n"
