"""Vertex ids that may be None: the same in the interpreter, in compiled code, on any number of ranks, in results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from cells import program_of
from none_programs import PROGRAMS, Tree
from thread_group import ThreadGroup, run_ranks
from ways import Way, assert_same

from sigps import Checkpoint, CompileError, ComputeError, ConfigError, Graph, GraphError, run
from sigps.compiler.explain import explain

SOURCES, TARGETS = [-1, -1, 3, -7, 8, 9, 4, 9], [3, -7, 4, 4, 9, 12, 5, 9]
WEIGHTS = [1.0, 2.5, 3.0, 1.5, 4.0, 1.0, 2.0, 5.0]
IDS = [-7, -1, 3, 4, 5, 8, 9, 12]


def graph(group: ThreadGroup | None = None) -> Graph:
    """Return a graph with negative ids, a loop, and vertices out of reach."""
    return Graph.from_edges(SOURCES, TARGETS, WEIGHTS, group=group)


# By hand.
EXPECTED: dict[str, dict[str, list[Any]]] = {
    "tree": {"parent": [-1, -1, -1, -7, 4, None, None, None]},
    "elect": {
        "best": [-1, 3, -1, 5, None, 9, 9, 9],
        "again": [5, -1, 5, -1, 5, 9, 9, 9],
        "silent": [1, 0, 1, 0, 1, 0, 2, 0],
        "agrees": [False] * 5 + [True] * 3,
    },
    "named": {
        "nobody": [100.0, 100.0, 101.0, 101.5, 102.0, 100.0, 100.0, 101.0],
        "last": [-7, None, None, 4, None, None, 9, None],
    },
    "kept": {"smaller": [0, 1, 1, 2, 1, 0, 1, 1]},
}

WAYS = [
    Way(device="python"),
    Way(direction="push"),
    Way(direction="pull", threads=2),
    Way(2, partitioner="hash"),
    Way(3, partitioner="vertices", direction="push"),
    Way(2, device="python", partitioner="hash"),
]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_states_messages_and_edges(name: str, way: Way) -> None:
    result = run_ranks(way.ranks, lambda group: run(PROGRAMS[name](), graph(group), **way.options()))[0]
    assert result.ids.tolist() == IDS
    assert {field: result[field].tolist() for field in EXPECTED[name]} == EXPECTED[name]
    if name == "kept":
        ends = zip(result.edges.sources.tolist(), result.edges.targets.tolist(), strict=True)
        kept = dict(zip(ends, result.edges["larger"].tolist(), strict=True))
        assert kept == {(a, b): b if b > a else None for a, b in kept}
        assert None in kept.values()


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "kept"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_host_code_of_gpus(name: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids take 32 bits here, and what stands for None is another number there."""
    host_gpu.use_host_as_gpu(monkeypatch)
    result = run_ranks(ranks, lambda group: run(PROGRAMS[name](), graph(group), device="cuda"))[0]
    assert {field: result[field].tolist() for field in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("direction", ["push", "pull", "auto"])
def test_on_a_gpu(name: str, direction: Any) -> None:
    result = run(PROGRAMS[name](), graph(), device="cuda", direction=direction)
    assert_same(result, run(PROGRAMS[name](), graph(), device="python"), exact=True)


@pytest.mark.gpu
def test_none_comes_to_cupy_as_a_number() -> None:
    import cupy

    result = run(Tree(source=-1), graph(), device="cuda")
    parents = cupy.asnumpy(result.to_cupy("parent"))
    assert parents.tolist() == [-1, -1, -1, -7, 4, *[np.iinfo(parents.dtype).min] * 3]


def test_results_say_none(tmp_path: Path) -> None:
    import pandas

    result = run(Tree(source=-1), graph(), device="cpu")
    values = result["parent"]
    assert isinstance(values, np.ma.MaskedArray)
    assert values.dtype == np.int64
    assert values.mask.tolist() == [False] * 5 + [True] * 3
    assert result.to_arrow()["parent"].to_pylist() == EXPECTED["tree"]["parent"]
    assert result.to_arrow()["parent"].type == pyarrow.int64()
    frame = result.to_pandas()
    assert frame["parent"].dtype == pandas.Int64Dtype()
    assert frame["parent"].isna().tolist() == values.mask.tolist()
    assert result.top("parent", 2) == [(5, 4), (-7, -1)]
    assert result.top("parent", 8)[-1] == (12, None)
    result.write_parquet(tmp_path / "r.parquet")
    assert (
        pyarrow.parquet.read_table(tmp_path / "r.parquet")["parent"].to_pylist() == EXPECTED["tree"]["parent"]
    )
    result.write_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().split() == [
        "id,parent", "-7,-1", "-1,-1", "3,-1", "4,-7", "5,4", "8,", "9,", "12,"
    ]  # fmt: skip


def test_ids_that_are_texts() -> None:
    given = Graph.from_edges(["a", "b"], ["b", "c"], vertices=["z"])
    for device in ("python", "cpu"):
        found = run(Tree(source="a"), given, device=device)
        assert found["parent"].tolist() == ["a", "a", "b", None]
        assert found.to_arrow()["parent"].to_pylist() == ["a", "a", "b", None]


def test_a_run_begins_with_none_and_with_an_earlier_result() -> None:
    body = "if self.superstep == 0:\n    self.n = 0 if self.p is None else 1\nself.vote_to_halt()"
    program = program_of(body, "p: State[VertexId | None] = None\nn: State[int] = 0\n")
    for device in ("python", "cpu"):
        found = run(program, graph(), device=device, initial={"p": {3: -7, 9: None}})
        assert found["p"].tolist() == [None, None, -7, None, None, None, None, None]
        assert found["n"].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
        again = run(program, graph(), device=device, initial=found)
        assert again["p"].tolist() == found["p"].tolist()
        given = [None, 1, 2, None, None, None, None, 12]
        assert run(program, graph(), device=device, initial={"p": given})["p"].tolist() == given
    names = Graph.from_edges(["a", "b"], ["b", "c"])
    assert run(program, names, device="cpu", initial={"p": {"a": "c"}})["p"].tolist() == ["c", None, None]
    with pytest.raises(ConfigError, match="give numbers"):
        run(program, graph(), device="cpu", initial={"p": {3: "x"}})


def test_a_log_keeps_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sigps.cli import main as cli

    whole = run(PROGRAMS["elect"](), graph(), device="cpu")["again"].tolist()
    for first, second in (("cpu", "python"), ("python", "cpu")):
        folder = tmp_path / first
        run(PROGRAMS["elect"](), graph(), device=first, checkpoint=Checkpoint(folder, every=1, keep=9))
        for log in sorted(folder.glob("*00000003*")):
            log.rename(tmp_path / f"{first}-{log.name}")
        found = run(
            PROGRAMS["elect"](), graph(), device=second, checkpoint=Checkpoint(folder, every=9), resume=True
        )
        assert found["again"].tolist() == whole
    assert cli.execute(["log", str(tmp_path / "cpu"), "--vertex", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["superstep", "status", "best", "again", "silent", "agrees"]
    assert lines[2].split() == ["1", "active", "None", "None", "0", "False"]


def test_traces_say_none() -> None:
    trace = run(Tree(source=-1), graph(), device="python", trace=[4, 8]).trace
    assert trace is not None
    assert [(e["before"]["parent"], e["after"]["parent"]) for e in trace if e["id"] == 4] == [
        (None, None), (None, -7),
    ]  # fmt: skip


MAYBE = "p: State[VertexId | None] = None\n"
NONE = "None is used as a number, or as the id of a vertex: ask 'is None' before"


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(
    ("body", "fields", "says"),
    [
        ("self.x = self.p + 1", MAYBE, NONE),
        ("if self.p < 3:\n    self.x = 1.0", MAYBE, NONE),
        ("self.x = 1.0 if -self.p == 3 else 0.0", MAYBE, NONE),
        ("self.send_to(self.p, 1.0)", MAYBE, NONE),
        ("self.p = max(self.p, self.id)", MAYBE, NONE),
        ("self.k = self.p", MAYBE + "k: State[VertexId] = 0\n", "None"),
    ],
)
def test_none_is_no_number(body: str, fields: str, says: str, device: str) -> None:
    program = program_of(f"{body}\nself.vote_to_halt()", fields)
    with pytest.raises(ComputeError, match=says) as found:
        run(program, graph(), device=device)
    assert "vertex -7, superstep 0" in str(found.value)
    assert found.value.source == body.split("\n")[0]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_none_is_not_compared_where_messages_are_reduced(device: str) -> None:
    body = (
        "if self.superstep == 0:\n    self.send_to_neighbors(self.p)\n"
        "else:\n    self.p = min(messages, default=None)"
    )
    program = program_of(f"{body}\nself.vote_to_halt()", MAYBE, message="message=VertexId | None")
    with pytest.raises(ComputeError, match=NONE) as found:
        run(program, graph(), device=device)
    assert found.value.source == "self.p = min(messages, default=None)"


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_what_python_says_of_none_holds(device: str) -> None:
    body = """
        self.truth = bool(self.p)
        self.same = self.p == self.q and self.p == None and not (self.p != self.q) and self.p != self.id
        if self.id > 3:
            self.p = self.id
        kept = self.p
        for edge in self.out_edges:
            if kept is None or edge.target > kept:
                kept = edge.target
        self.q = kept if kept is not None and kept > 8 else pick(self.id, 8)
        self.vote_to_halt()
    """
    before = "def pick(one, limit):\n    if one < limit:\n        return one\n    return None"
    fields = MAYBE + "q: State[VertexId | None]\ntruth: State[bool] = True\nsame: State[bool] = False\n"
    found = run(program_of(body, fields, before=before), graph(), device=device)
    assert found["p"].tolist() == [None, None, None, 4, 5, 8, 9, 12]
    assert found["q"].tolist() == [-7, -1, 3, 4, 5, 9, 12, 12]
    assert not found["truth"].any()
    assert found["same"].all()


WRONG = [
    ("q: State[int | None] = None", r"State\[int \| None\] is not supported: use .*VertexId \| None"),
    ("q: State[VertexId] = None", "declare it as VertexId | None"),
    ("q: State[VertexId | None] = 1.5", "cannot begin as 1.5"),
]


@pytest.mark.parametrize(("field", "says"), WRONG)
def test_what_cannot_be_declared(field: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        program_of("self.vote_to_halt()", field)


def test_none_where_none_may_be() -> None:
    program = program_of("self.k = None\nself.vote_to_halt()", "k: State[VertexId] = 0")
    with pytest.raises(CompileError, match="this is None: what may be no vertex is declared as VertexId"):
        run(program, graph(), device="cpu")
    with pytest.raises(ComputeError, match="k is never None: declare it as VertexId"):
        run(program, graph(), device="python")
    forgets = "def pick(i):\n    if i > 3:\n        return i"
    program = program_of("self.p = pick(self.id)\nself.vote_to_halt()", MAYBE, before=forgets)
    with pytest.raises(CompileError, match="returns int on one path and None on another"):
        run(program, graph(), device="cpu")


def test_the_id_that_stands_for_none_is_refused() -> None:
    given = Graph.from_edges([-(2**63)], [5])
    with pytest.raises(GraphError, match="stands for None, and a vertex has that id"):
        run(Tree(source=5), given, device="cpu")
    plain = program_of("self.vote_to_halt()")
    assert run(plain, given, device="cpu").ids.tolist() == [-(2**63), 5]


def test_explain_says_that_it_may_be_none() -> None:
    assert "parent: VertexId | None" in explain(Tree, source=1)
    assert "value: VertexId | None" in explain(type(PROGRAMS["elect"]()))


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_parts_of_a_state_may_be_none(device: str) -> None:
    before = "class Way(NamedTuple):\n    length: float\n    last: VertexId | None"
    body = """
        if self.id > 3:
            self.way = Way(1.0, self.id)
        elif self.way.last is None:
            self.way = Way(self.way.length + 2.0, None)
        self.vote_to_halt()
    """
    found = run(program_of(body, "way: State[Way] = Way(0.5, None)", before=before), graph(), device=device)
    assert found["way.last"].tolist() == [None, None, None, 4, 5, 8, 9, 12]
    assert found["way.length"].tolist() == [2.5] * 3 + [1.0] * 5
