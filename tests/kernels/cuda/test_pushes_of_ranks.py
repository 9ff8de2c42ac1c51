"""Pushes along packed rows of several ranks, whose messages cross to other ranks; by the kernels' text on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_kernels import host_kernels
from host_lease import run_leases_by_their_text
from host_peers import use_host_as_peers
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Aggregator, Graph, State, Vertex
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.engine.direction import GPU_PULL_GAIN_EARLY
from sigps.engine.gpu import engine, priority, staged
from sigps.errors import ConfigError
from sigps.graph.formats.packed_store import save_packed


class Waves(Vertex, message=int):
    """A vertex is active, halted or retired; sums of counts, and vertices that go on by themselves."""

    heard: State[int] = 0
    left: State[bool] = False
    total = Aggregator.sum(int)

    def compute(self, messages):  # type: ignore[no-untyped-def]
        got = sum(messages)
        self.heard += got
        self.total += got
        if self.superstep < 4 and (self.id + self.superstep) % 3 == 0:
            self.send_to_neighbors(self.id % 5 + self.superstep)
        if self.superstep == 2 and self.id % 4 == 1:
            self.left = True
            self.retire()
        elif self.superstep > 4 or self.id % 2 == 0:
            self.vote_to_halt()


def store(folder: Path, order: Any, kind: str = "rmat") -> Path:
    """Write an undirected graph of many pages, of which one row spans several."""
    if kind == "grid":
        made = sigps.generate("grid", rows=20, columns=15, weights="random")
    else:
        made = sigps.generate("rmat", scale=7, seed=2, weights="random").undirected(simple=True)
    save_packed(made, folder / "store", order=order, page_arcs=32)
    packed = sigps.load(folder / "store").packed
    assert packed is not None
    assert packed.rows.table.num_pages >= 24  # at least eight of each of three ranks
    return folder / "store"


RUNS = [
    (2, "peer", 2, "degree", "rmat", BFS(source=1)),
    (3, "peer", 1, "given", "grid", BFS(source=1)),
    (3, "peer", 2, "given", "rmat", SSSP(source=1)),
    (2, "peer", 1, "degree", "grid", SSSP(source=1)),
    (2, "peer", 1, "given", "rmat", WCC()),
    (3, "peer", 2, "degree", "grid", WCC()),
    (3, "peer", 1, "degree", "rmat", KCore()),
    (2, "peer", 2, "given", "rmat", PageRank(iterations=3)),
    (3, "peer", 2, "degree", "rmat", Waves()),
    (3, "nccl", 2, "given", "rmat", BFS(source=1)),
    (2, "nccl", 1, "degree", "grid", SSSP(source=1)),
    (3, "nccl", 1, "given", "rmat", WCC()),
    (2, "nccl", 2, "degree", "rmat", KCore()),
    (3, "nccl", 2, "degree", "rmat", PageRank(iterations=3)),
    (2, "nccl", 2, "given", "rmat", Waves()),
]


@pytest.mark.parametrize(
    ("ranks", "transport", "blocks", "order", "kind", "program"),
    RUNS,
    ids=[f"{type(run[-1]).__name__}-{run[0]}-{run[1]}" for run in RUNS],
)
def test_messages_cross_to_other_ranks(
    ranks: int,
    transport: Any,
    blocks: int,
    order: Any,
    kind: str,
    program: Vertex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = store(tmp_path, order, kind)
    precision: Any = "single" if isinstance(program, SSSP) else "double"  # no row of 16 bytes is swapped here
    judge = sigps.run(program, sigps.load(folder), device="python", asynchronous=False, precision=precision)
    use_ranks(monkeypatch, ranks, transport)
    launched = run_leases_by_their_text(monkeypatch, blocks)
    monkeypatch.setattr(priority, "_kernels", _bucket_kernels)
    read = {}
    for name, more in WAYS.items():
        launched.clear()

        def work(group: ThreadGroup, more: dict[str, Any] = more) -> sigps.Result:
            how: dict[str, Any] = {"transport": transport, "stream": "always", "asynchronous": False} | more
            stored = sigps.load(folder, group=group)
            return sigps.run(program, stored, device="cuda", precision=precision, **how)

        found = run_ranks(ranks, work)[0]
        assert len(launched) >= ranks
        for field in judge.fields:
            np.testing.assert_allclose(
                np.asarray(found[field]), np.asarray(judge[field]), rtol=1e-12, err_msg=f"{field} {name}"
            )
        if not more.get("asynchronous"):
            assert [(s.active, s.messages) for s in found.stats] == [
                (s.active, s.messages) for s in judge.stats
            ]
        directions = {s.direction for s in found.stats[1:]}
        assert name != "push" or "push" in directions  # after next_phase() has woken all it is a pull
        assert name != "bulk" or directions == {"pull"}
        read[name] = sum(s.bytes_read for s in found.stats), directions
    assert read["bulk"][0] > 0
    assert read["cached"][0] == 0
    if "push" in read["auto"][1] and not isinstance(program, Waves):
        assert read["auto"][0] < read["bulk"][0]


def use_ranks(monkeypatch: pytest.MonkeyPatch, ranks: int, transport: str) -> None:
    """Let `device="cuda"` be this process for so many ranks."""
    if transport == "peer":
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch, has_nccl=True)


def _bucket_kernels(gpu: Any, value_type: str, takes_min: bool) -> tuple[Any, Any]:
    kernels = host_kernels("buckets", priority.bucket_macros(value_type, takes_min))
    return kernels["find_best_warp_mapped"], kernels["release_warp_mapped"]


WAYS: dict[str, dict[str, Any]] = {
    "push": {"direction": "push"},
    "auto": {},
    "bulk": {"transfer": "bulk"},
    "out of turn": {"asynchronous": "auto"},
    "cached": {"device_memory": "60MB"},
}


@pytest.mark.parametrize(
    ("ranks", "transport", "row_cost"),
    [(2, "peer", 0), (3, "peer", 0), (2, "nccl", 0), (3, "nccl", 0), (2, "peer", 80), (2, "nccl", 80)],
)
def test_a_search_by_itself_pushes_and_pulls(
    ranks: int, transport: Any, row_cost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels of few senders are pushed, and others pulled, whichever ranks have them; fewer where rows cost more."""
    monkeypatch.setattr(engine, "GPU_ROW_COST", row_cost)
    monkeypatch.setattr(staged, "GPU_ROW_COST", row_cost)
    made = sigps.generate("rmat", scale=8, seed=3).undirected(simple=True)
    rows, first = made.in_edges(), made.num_vertices
    targets = np.repeat(np.arange(first), np.diff(rows.offsets).astype(np.int64))
    ends = np.arange(first, first + 40)
    near, far = np.append(rows.sources[0], ends[:19]), np.append(rows.sources[-1], ends[20:39])
    graph = Graph.from_edges(
        np.concatenate([rows.sources, near, far]), np.concatenate([targets, ends]), directed=False
    )
    save_packed(graph.undirected(simple=True), tmp_path / "store", order="degree", page_arcs=64)
    program = BFS(source=int(ends[19]))
    judge = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    use_ranks(monkeypatch, ranks, transport)
    run_leases_by_their_text(monkeypatch, 2)

    def work(group: ThreadGroup) -> sigps.Result:
        stored = sigps.load(tmp_path / "store", group=group)
        return sigps.run(program, stored, device="cuda", transport=transport, stream="always")

    found = run_ranks(ranks, work)[0]
    assert (np.asarray(found["level"]) == np.asarray(judge["level"])).all()
    directions = [s.direction for s in found.stats]
    edges, gain = graph.undirected(simple=True).num_edges + graph.num_vertices, GPU_PULL_GAIN_EARLY
    few = "push" if (2 + row_cost) * gain < edges else "pull"
    assert few == "push" or row_cost > 0
    assert directions[1:18] == [few] * 17
    assert "pull" in directions[18:25]
    assert directions[-10:] == [few] * 10


def test_without_peers_pushes_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store(tmp_path, "given")
    use_host_as_gpu(monkeypatch)

    def work(group: ThreadGroup) -> sigps.Result:
        how: dict[str, Any] = {"transport": "mpi", "stream": "always", "direction": "push"}
        return sigps.run(BFS(source=1), sigps.load(folder, group=group), device="cuda", **how)

    with pytest.raises(ConfigError, match="messages that cross from GPU to GPU"):
        run_ranks(2, work)


@pytest.mark.parametrize(("first", "second"), [((2, "peer"), (3, "nccl")), ((3, "nccl"), (2, "peer"))])
def test_pushes_go_on_from_a_log(
    first: tuple[int, str], second: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, program = store(tmp_path, "degree", "grid"), SSSP(source=1)
    judge = sigps.run(program, sigps.load(folder), device="python", precision="single")
    log = sigps.Checkpoint(tmp_path / "log", every=2)

    def on(ranks: int, transport: Any, **more: Any) -> sigps.Result:
        with monkeypatch.context() as patched:
            use_ranks(patched, ranks, transport)
            run_leases_by_their_text(patched, 1)
            how: dict[str, Any] = {"stream": "always", "precision": "single", "checkpoint": log} | more

            def work(group: ThreadGroup) -> sigps.Result:
                stored = sigps.load(folder, group=group)
                return sigps.run(program, stored, device="cuda", transport=transport, **how)

            return run_ranks(ranks, work)[0]

    begun = on(*first, max_supersteps=5)
    assert len(begun.saves) >= 1
    found = on(*second, resume=True)
    assert "push" in {s.direction for s in found.stats}
    np.testing.assert_array_equal(np.asarray(found["distance"]), np.asarray(judge["distance"]))
