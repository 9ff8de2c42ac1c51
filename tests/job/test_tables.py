"""Tables: parameters that are arrays, read by position, on every device and for every number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from cells import program_of
from thread_group import ThreadGroup, run_ranks
from ways import Way

from sigps import (
    Checkpoint,
    CompileError,
    ComputeError,
    ConfigError,
    Graph,
    Param,
    State,
    StateLogError,
    Table,
    Vertex,
    run,
    run_many,
)
from sigps.cli import main as cli
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse

N = 40
RNG = np.random.default_rng(11)
SOURCES, TARGETS = RNG.integers(0, N, 160), RNG.integers(0, N, 160)
WEIGHTS = RNG.integers(-8, 9, 7) / 4
FLAGS = [True, False, True]


class Looked(Vertex, message=float):
    """Messages weighed by a table at the edge's end, and again where they arrive; a small table of each kind."""

    weights: Param[Table[float]]
    steps: Param[Table[np.int16]] = (3, -1, 40)
    flags: Param[Table[bool]] = FLAGS
    total: State[float] = 0.0
    size: State[int] = 0
    last: State[int] = 0
    flag: State[bool] = False

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, self.weights[edge.target % len(self.weights)])
            self.size = len(self.weights)
            self.last = self.step(-1)
            self.flag = self.flags[self.id % 3]
        else:
            self.total = sum(m * self.weights[-1] for m in messages)
            self.vote_to_halt()

    def step(self, i):
        return self.steps[i] + self.steps[0]


def graph(group: ThreadGroup | None = None) -> Graph:
    return Graph.from_edges(SOURCES, TARGETS, vertices=np.arange(N), group=group)


def check(result: Any, weights: Any) -> None:
    heard = np.bincount(TARGETS, minlength=N) * weights[np.arange(N) % len(weights)] * weights[-1]
    np.testing.assert_allclose(result["total"], heard, rtol=1e-12)
    assert set(result["size"].tolist()) == {len(weights)}
    assert set(result["last"].tolist()) == {43}
    assert result["flag"].tolist() == [FLAGS[v % 3] for v in range(N)]


WAYS = [
    Way(device="python"),
    Way(direction="push"),
    Way(direction="pull", threads=2),
    Way(2, partitioner="hash"),
    Way(3, partitioner="vertices", direction="push"),
    Way(2, device="python", partitioner="hash"),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_tables_are_read_by_position(way: Way) -> None:
    def on_rank(group: ThreadGroup) -> Any:
        made = graph(group)
        return [run(Looked(weights=w), made, **way.options()) for w in (WEIGHTS, WEIGHTS[:3].tolist())]

    longer, shorter = run_ranks(way.ranks, on_rank)[0]
    check(longer, WEIGHTS)
    check(shorter, WEIGHTS[:3])


def test_another_length_compiles_nothing_again() -> None:
    assert analyse(Looked(weights=[1.0])) is analyse(Looked(weights=WEIGHTS))


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_host_code_of_gpus(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    check(
        run_ranks(ranks, lambda group: run(Looked(weights=WEIGHTS), graph(group), device="cuda"))[0], WEIGHTS
    )


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["push", "pull", "auto"])
def test_on_a_gpu(direction: Any) -> None:
    for weights in (WEIGHTS, WEIGHTS[:3], np.tile(WEIGHTS, 10_000)):
        check(run(Looked(weights=weights), graph(), device="cuda", direction=direction), weights)


def test_in_single_precision() -> None:
    check(run(Looked(weights=WEIGHTS), graph(), device="cpu", precision="single"), WEIGHTS)


def test_numbers_that_wrap_around_and_lists() -> None:
    fields = "t: Param[Table[np.uint64]]\nk: State[np.uint64] = 0\nn: State[int] = 0"
    body = """
        if self.superstep == 0:
            self.k = self.t[1] * self.t[0]
            self.send_to_neighbors(2)
            self.send_to(self.id, 1)
        for m in messages:
            self.n += int(self.t[m])
        self.vote_to_halt()
    """
    program = program_of(
        body, fields, message="message=int", before="from sigps import Table", t=[2**63, 2, 5]
    )
    pair = Graph.from_edges([0], [1])
    for device in ("python", "cpu"):
        found = run(program, pair, device=device)
        assert (found["k"].tolist(), found["n"].tolist()) == ([0, 0], [2, 7])


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(("at", "length"), [("self.id", 3), ("-self.id - 1", 3), ("0", 0), ("-1", 0)])
def test_positions_outside_are_errors(at: str, length: int, device: str) -> None:
    program = program_of(
        f"self.x = self.t[{at}]\nself.vote_to_halt()",
        "t: Param[Table[float]]",
        before="from sigps import Table",
        t=[1.0] * length,
    )
    with pytest.raises(ComputeError, match="the table has no such position") as found:
        run(program, graph(), device=device)
    assert f"vertex {length}, superstep 0" in str(found.value)
    assert found.value.source == f"self.x = self.t[{at}]"


WRONG_USE = [
    ("self.t[0] = 1.0", r"self.t is a table, and a parameter of the run: it is read only"),
    ("self.x = self.t[0:2][0]", "a table is read one number at a time"),
    ("self.x = sum(self.t)", r"self.t is a table: read self.t\[i\] and len\(self.t\)"),
    ("self.x = self.t[0.5]", "a position is a whole number, and this is a float"),
]


@pytest.mark.parametrize(("line", "says"), WRONG_USE)
def test_what_a_table_is_not(line: str, says: str) -> None:
    program = program_of(
        f"{line}\nself.vote_to_halt()",
        "t: Param[Table[float]]",
        before="from sigps import Table",
        t=[1.0, 2.0],
    )
    with pytest.raises(CompileError, match=says):
        run(program, graph(), device="cpu")
    with pytest.raises(TypeError):
        run(program, graph(), device="python")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"weights": [[1.0]]}, r"it has the shape \(1, 1\), and a table has one dimension"),
        ({"weights": 3.0}, "a table has one dimension"),
        ({"weights": [1.0, None]}, "it holds object, and a table holds numbers"),
        (
            {"weights": [1.0], "steps": [1, 40000]},
            "40000 at position 1 is no whole number that int16 can hold",
        ),
        ({"weights": [1.0], "steps": [1.5]}, "1.5 at position 0 is no whole number"),
        ({"weights": [1.0], "flags": [0, 1]}, "and the table is one of bool"),
        ({"weight": [1.0]}, "no parameter 'weight'; did you mean 'weights'"),
        ({}, "needs weights=: a parameter without a default"),
    ],
)
def test_what_no_table_is_made_of(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Looked(**given)


def test_types_that_a_table_cannot_have() -> None:
    with pytest.raises(TypeError, match="a table has numbers of one type"):
        Table[str]
    with pytest.raises(CompileError, match=r"State\[Table\[float\]\] is not supported"):
        program_of("self.vote_to_halt()", "t: State[Table[float]]", before="from sigps import Table")


def test_what_was_given_may_change_afterwards() -> None:
    given = WEIGHTS.copy()
    program = Looked(weights=given)
    given[:] = 100.0
    check(run(program, graph(), device="cpu"), WEIGHTS)


def test_explain_names_tables() -> None:
    assert "weights: Table[float], steps: Table[int16], flags: Table[bool]" in explain(Looked)


def test_a_log_is_of_its_tables(tmp_path: Path) -> None:
    def go(weights: Any, resume: bool = True) -> Any:
        return run(
            Looked(weights=weights),
            graph(),
            device="cpu",
            checkpoint=Checkpoint(tmp_path, every=1),
            resume=resume,
        )

    go(WEIGHTS, resume=False)
    check(go(WEIGHTS), WEIGHTS)
    with pytest.raises(StateLogError, match="another source, parameters"):
        go(WEIGHTS + 1)


def test_many_runs_with_tables() -> None:
    found = run_many(Looked, graph(), weights=[WEIGHTS, WEIGHTS[:3]], device="cpu")
    check(found[0], WEIGHTS)
    check(found[1], WEIGHTS[:3])


JOB = """
program: program.py:Look
params: {table: table.csv, small: [1, 2]}
graph: {path: edges.txt}
engine: {device: cpu}
output: {path: out.csv}
"""
PROGRAM = """
from sigps import Param, State, Table, Vertex

class Look(Vertex):
    table: Param[Table[float]]
    small: Param[Table[int]] = [0]
    x: State[float] = 0.0

    def compute(self, messages):
        self.x = self.table[self.id] + self.small[-1]
        self.vote_to_halt()
"""


def test_a_job_gives_a_list_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    files = {
        "job.yaml": JOB,
        "program.py": PROGRAM,
        "edges.txt": "0 1\n1 2\n",
        "table.csv": "weight\n1.5\n2.5\n3\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    np.save(tmp_path / "other.npy", np.array([10.0, 20.0, 30.0]))
    monkeypatch.chdir(tmp_path)
    assert cli.execute(["run", "jobs/job.yaml"]) == 0
    assert (folder / "out.csv").read_text().split() == ["id,x", "0,3.5", "1,4.5", "2,5"]
    assert cli.execute(["run", "jobs/job.yaml", "--set", "params.table=other.npy"]) == 0
    assert (folder / "out.csv").read_text().split() == ["id,x", "0,12", "1,22", "2,32"]
    capsys.readouterr()
    for value, says in (
        ("none.npy", "none.npy cannot be read"),
        ("table.txt", "a table is a list, or a .npy or .csv file"),
        ("jobs/edges.csv", "line 1: '0 1' is no number; a table has one a line"),
    ):
        (folder / "edges.csv").write_text("weight\n0 1\n")
        assert cli.execute(["run", "jobs/job.yaml", "--set", f"params.table={value}"]) != 0
        assert says.replace("line 1", "line 2") in capsys.readouterr().err.replace("\n", " ")
