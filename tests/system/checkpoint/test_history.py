"""What the logs in a folder say of a vertex, against states by hand, on every kind of ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from thread_group import ThreadGroup, run_ranks

from sigps import Checkpoint, Graph, GraphError, State, StateLogError, Vector, Vertex, VertexId, run
from sigps.system.checkpoint import files
from sigps.system.checkpoint.files import find_unfinished
from sigps.system.checkpoint.history import KeptLog, damages, follow, history, vertex_states

IDS = {
    "identity": [0, 1, 2, 3],
    "range": [7, 8, 9, 10],
    "table": [-5, 3, 20, 2**40],
    "strings": ["ann", "bob", "carl", "7"],
}


class Clock(Vertex, message=int):
    """Counts supersteps; the vertex without out-edges stops after two."""

    ticks: State[int] = 0
    half: State[float] = 0.0

    def compute(self, messages: object) -> None:
        self.ticks += 1
        self.half = self.ticks / 2
        if self.out_degree == 0 and self.superstep == 1:
            self.vote_to_halt()


def save(folder: Path, ids: list[int] | list[str], ranks: int = 1) -> None:
    def run_rank(group: ThreadGroup) -> None:
        graph = Graph.from_edges(ids[:-1], ids[1:], group=group)
        checkpoint = Checkpoint(folder, every=1, keep=9)
        run(Clock(), graph, device="python", max_supersteps=3, checkpoint=checkpoint)

    run_ranks(ranks, run_rank)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("kind", IDS)
def test_a_vertex_is_followed_through_the_logs(kind: str, ranks: int, tmp_path: Path) -> None:
    ids = IDS[kind]
    save(tmp_path, ids, ranks)
    logs = history(tmp_path)
    assert [log.manifest and log.manifest.id_kind for log in logs] == [kind] * 3
    states, problems = follow(logs, [ids[-1], ids[0]])
    assert problems == []
    seen = {
        vertex: [(s.superstep, s.status, s.values["ticks"], s.values["half"]) for s in found]
        for vertex, found in states.items()
    }
    assert seen == {
        ids[-1]: [(1, "active", 1, 0.5), (2, "halted", 2, 1.0), (3, "halted", 2, 1.0)],
        ids[0]: [(1, "active", 1, 0.5), (2, "active", 2, 1.0), (3, "active", 3, 1.5)],
    }
    assert follow(logs, [str(ids[0])])[0] == {str(ids[0]): states[ids[0]]}


class Kinds(Vertex):
    """The least whole number, no vertex, and a vector of the least whole number."""

    low: State[int] = -(2**63)
    parent: State[VertexId | None] = None
    pair: State[Vector[int, 2]] = -(2**63)

    def compute(self, messages: object) -> None:
        if self.id > 0:
            self.parent = 0


def test_none_is_what_was_declared_to_be_it(tmp_path: Path) -> None:
    graph = Graph.from_edges([0], [1])
    checkpoint = Checkpoint(tmp_path, every=1)
    run(Kinds(), graph, device="python", max_supersteps=1, checkpoint=checkpoint)
    states, _ = follow(history(tmp_path), [0, 1])
    for vertex, parent in ((0, None), (1, 0)):
        values = states[vertex][-1].values
        assert (values["low"], values["parent"]) == (-(2**63), parent)
        assert values["pair"].tolist() == [-(2**63)] * 2


@pytest.mark.parametrize(
    ("kind", "absent", "rule"),
    [
        ("identity", 4, "ids there are 0 to 3"),
        ("identity", "ann", "ids there are 0 to 3"),
        ("range", 0, "ids there are 7 to 10"),
        ("table", 0, "the 4 ids there are whole numbers"),
        ("table", 2**70, "the 4 ids there are whole numbers"),
        ("strings", 8, "the 4 ids there are text"),
    ],
)
def test_an_absent_vertex_is_named(kind: str, absent: int | str, rule: str, tmp_path: Path) -> None:
    save(tmp_path, IDS[kind])
    with pytest.raises(GraphError) as caught:
        follow(history(tmp_path), [IDS[kind][0], absent])
    assert f"no log has vertex {absent!r}: " in str(caught.value)
    assert rule in str(caught.value)


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    save(tmp_path, IDS["table"], ranks=2)
    first, second, third = [log.path for log in history(tmp_path)]
    (first / "manifest.msgpack").write_bytes(b"x")
    (second / files.part_name(1)).unlink()
    logs = history(tmp_path)
    assert [log.manifest is None for log in logs] == [True, False, False]
    assert "it begins with b'x'" in logs[0].problem
    states, problems = follow(logs, [20])
    assert [state.superstep for state in states[20]] == [3]
    assert [str(path) in problem for path, problem in zip((first, second), problems, strict=True)] == [
        True
    ] * 2
    with pytest.raises(StateLogError, match="none of the 2 logs can be read; the newest: "):
        follow(logs[:2], [20])
    assert [log.path for log in logs if log.manifest and damages(log.path, log.manifest)] == [second]
    assert third == logs[2].path


def test_any_damage_of_what_is_read_is_noticed(tmp_path: Path) -> None:
    save(tmp_path, IDS["table"])
    log = history(tmp_path)[0]
    assert log.manifest is not None
    whole = vertex_states(log.path, log.manifest, [20])
    path = log.path / files.part_name(0)
    raw = path.read_bytes()
    num_noticed = 0
    for at in range(0, len(raw), 3):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 8]) + raw[at + 1 :])
        try:
            assert vertex_states(log.path, log.manifest, [20]) == whole
        except StateLogError:
            num_noticed += 1
    assert num_noticed > 100


def test_what_is_no_finished_log(tmp_path: Path) -> None:
    with pytest.raises(StateLogError, match="absent: there is no such folder"):
        history(tmp_path / "absent")
    (tmp_path / "29990101T000000Z-0000-00000005").mkdir()
    with pytest.raises(StateLogError, match=r"no finished state log lies here \(1 begun and not finished\)"):
        history(tmp_path)
    save(tmp_path, IDS["identity"])
    assert [path.name[-1] for path in find_unfinished(tmp_path)] == ["5"]
    assert [log.path.name[-1] for log in history(tmp_path)] == ["1", "2", "3"]


def test_logs_of_several_graphs_lie_together(tmp_path: Path) -> None:
    save(tmp_path, IDS["range"])
    save(tmp_path, IDS["strings"])
    logs: list[KeptLog] = history(tmp_path)
    states, _ = follow(logs, ["ann", "7"])
    assert [len(states[vertex]) for vertex in ("ann", "7")] == [3, 6]
    assert len({state.run for state in states["7"]}) == 2
    assert all(isinstance(state.values["ticks"], np.integer) for state in states["7"])
