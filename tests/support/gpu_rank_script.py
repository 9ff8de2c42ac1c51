"""Run under `mpirun` by `test_gpu_mpirun.py`: programs on GPUs, one rank a process, judged by the interpreter.

mpirun -n 2 python gpu_rank_script.py equality peer 0
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import master_programs
import numpy as np
import pytest
from battery import BATTERY
from edge_programs import Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves
from edge_schedule_programs import BY_EDGE_ON_GPUS
from equality_programs import PROGRAMS, program_for
from fault_cases import CASES, assert_named
from master_programs import Fading, Letters
from send_programs import Flood, FloodSum
from value_programs import VALUES
from walk_programs import ALONG_NO_EDGES, WALKS
from ways import assert_same, by_size

from sigps import Aggregator, Checkpoint, Graph, Shared, State, Vertex, generate, load, run, run_many, stream
from sigps.apps import (
    BFS,
    SCC,
    SSSP,
    WCC,
    BiTriDN,
    EigenvectorCentrality,
    HeatDiffusion,
    KCore,
    LabelGroups,
    MinimumSpanningForest,
    Node2vecWalks,
    PageRank,
    PersonalisedPageRank,
    StreamDN,
)
from sigps.engine.gpu import crossing_plan, placement
from sigps.engine.gpu.spec import GpuSpec
from sigps.errors import ComputeError, ConfigError, SigpsError
from sigps.graph.formats.packed_store import save_packed
from sigps.group import Alone, world

GRAPHS = ["skewed", "grid", "hub_on_a_partition_border", "isolated", "string_ids", "one_vertex", "star_in"]
DIRECTIONS = ["auto", "push", "pull"]
METHODS = ["edges", "hash", "vertices", "function"]
MANY: dict[str, tuple[type[Vertex], dict[str, Any]]] = {
    "combined": (BFS, {"source": [0, 5, 9, 2, 7]}),
    "best": (SSSP, {"source": [0, 7, 3]}),
    "on edges": (LabelGroups, {"seed": [1, 2, 3, 4]}),
    "direct and on edges": (MinimumSpanningForest, {"seed": [1, 2, 3]}),
    "direct and listed": (Node2vecWalks, {"seed": [1, 5, 9, 4]}),
}


def equality(transport: str, turn: str) -> None:
    """Compare a third of all runs with the interpreter's; `turn` says which third."""
    group = world()
    for i, name in enumerate(PROGRAMS):
        for j, graph in enumerate(GRAPHS):
            k = i + j
            if k % 3 != int(turn) % 3:
                continue
            options = {
                "direction": DIRECTIONS[(k // 3) % 3],
                "partitioner": METHODS[k % 4] if k % 4 < 3 else by_size(group.size),
            }
            check(name, graph, transport, **options)
    tell(f"{len(PROGRAMS) * len(GRAPHS) // 3} runs agree")


def check(name: str, sample: str, transport: str, **options: Any) -> None:
    """Run a program on all ranks, and compare rank 0's result; in order, and in priority order."""
    program, group = program_for(name, sample), world()
    chosen: dict[str, Any] = {"device": "cuda", "transport": transport, **options}
    graph = BATTERY[sample].build(group=group)
    results = [run(program, graph, asynchronous=asynchronous, **chosen) for asynchronous in (False, "auto")]
    if group.rank == 0:
        judge = run(program, BATTERY[sample].build(group=Alone()), device="python")
        try:
            for in_order, result in zip((True, False), results, strict=True):
                assert_same(result, judge, exact=False, in_order=in_order)
        except AssertionError as error:
            error.add_note(f"{name} on {sample}, {group.size} ranks, {options}")
            raise


def packed(transport: str, folder: str) -> None:
    """Stream packed edges on all ranks: with all pages on hosts, some of them, and none."""
    group = world()
    ran = 0
    for scale, page_arcs, order in ((9, 64, "given"), (13, 1 << 12, "degree")):
        store = Path(folder) / f"{scale}"
        if group.rank == 0:
            drawn = generate("rmat", scale=scale, seed=3, weights="random", group=Alone()).undirected(
                simple=True
            )
            save_packed(drawn, store, order=order, page_arcs=page_arcs)
        group.all_gather(0)
        for program in (PageRank(iterations=5), BFS(source=2), WCC(), KCore(), SSSP(source=2)):
            judge = run(program, load(store, group=Alone()), device="cpu") if group.rank == 0 else None
            ways: list[dict[str, Any]] = [{}, {"transfer": "bulk"}, {"device_memory": "60MB"}]
            if transport != "mpi":
                ways += [{"direction": "push"}, {"asynchronous": False}]
            for more in ways:
                graph = load(store, group=group)
                result = run(program, graph, device="cuda", transport=transport, stream="always", **more)
                assert not graph.is_laid_out
                if judge is not None:
                    assert "device_memory" in more or sum(s.bytes_read for s in result.stats) > 0
                    assert "direction" not in more or "push" in {s.direction for s in result.stats}
                    for field in judge.fields:
                        name = f"{type(program).__name__}.{field} {more}"
                        found, expected = np.asarray(result[field]), np.asarray(judge[field])
                        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)
                    ran += 1
                del graph, result  # whose arrays are on the GPU, of which the next run may have a part only
    tell(f"{ran} streamed runs agree")


def walks(transport: str, folder: str) -> None:
    """Run what sends direct messages, walks edges or goes along none beside packed edges, on all ranks."""
    group, ran = world(), 0
    stores = {"given": Path(folder) / "given", "degree": Path(folder) / "degree"}
    if group.rank == 0:
        drawn = generate("rmat", scale=11, seed=3, weights="random", group=Alone()).undirected(simple=True)
        for order, store in stores.items():
            save_packed(drawn, store, order=order, page_arcs=1 << 10)
    group.all_gather(0)
    given = [
        ("given", WALKS[name])
        for name in ("sorted", "folds", "weights", "silent", "records", "listed records")
    ]
    for order, program in [*given, *(("degree", program) for program in ALONG_NO_EDGES[:3])]:
        store: Path = stores[order]
        judge = (
            run(program, load(store, group=Alone()), device="python", max_supersteps=30)
            if group.rank == 0
            else None
        )
        for more in ({}, {"device_memory": "200MB"}):
            how: dict[str, Any] = {"transport": transport, "stream": "always", "max_supersteps": 30} | more
            graph = load(store, group=group)
            result = run(program, graph, device="cuda", **how)
            assert not graph.is_laid_out
            if judge is not None:
                for field in judge.fields:
                    name = f"{type(program).__name__}.{field} {more}"
                    found, expected = np.asarray(result[field]), np.asarray(judge[field])
                    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)
                ran += 1
            del graph, result
    tell(f"{ran} runs beside packed edges agree")


def values(transport: str, folder: str) -> None:
    """Keep values on edges beside packed edges on all ranks: on GPUs, on hosts, crossing in pieces; and from a log."""
    group, ran, store = world(), 0, Path(folder) / "store"
    whole = (
        generate("rmat", scale=11, seed=2, weights="random", group=Alone()).undirected()
        if group.rank == 0
        else None
    )
    if whole is not None:
        save_packed(whole, store, order="given", page_arcs=256)
    group.all_gather(0)
    ways: list[tuple[dict[str, Any], list[bool] | None, int]] = [
        ({}, None, 1 << 20),
        ({"device_memory": "200MB"}, None, 1 << 20),
        ({}, [False, True], 1000),
        ({"host_memory": "1MB"}, [False, False], 5000),
    ]
    for name, program in VALUES.items():
        judge = run(program, whole, device="cpu", max_supersteps=40) if whole is not None else None
        how: dict[str, Any] = {"device": "cuda", "transport": transport, "stream": "always"}
        for more, stays, entries in ways:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(crossing_plan, "_LEAST_ENTRIES", entries)
                if stays is not None:
                    patched.setattr(placement, "_stays", lambda wanted, room, stays=stays: stays)
                graph = load(store, group=group)
                result = run(program, graph, max_supersteps=40, **how, **more)
            assert not graph.is_laid_out
            if judge is not None:
                try:
                    assert_same(result, judge, exact=False)
                except AssertionError as error:
                    error.add_note(f"{name} {more} {stays}, {group.size} ranks")
                    raise
                ran += 1
            del graph, result
        log = Checkpoint(f"{folder}/{name}", every=2)
        for stop in (3, 40):
            how |= {"checkpoint": log, "resume": True}
            result = run(program, load(store, group=group), max_supersteps=stop, **how)
        if judge is not None:
            assert_same(result, judge, exact=False)
            ran += 1
        del result
    tell(f"{ran} runs with values on packed edges agree")


def by_edge(transport: str, turn: str) -> None:
    """The same by the edge schedule, of programs for whose messages there are atomics."""
    for i, name in enumerate(BY_EDGE_ON_GPUS):
        for j, graph in enumerate(GRAPHS):
            if (i + j) % 3 == int(turn) % 3:
                check(name, graph, transport, schedule="edge", partitioner=METHODS[(i + j) % 3])
    tell("runs by edge agree")


EDGE_PROGRAMS: list[type[Vertex]] = [
    EdgeTriangles,
    Waves,
    Marks,
    Mirrors,
    Returns,
    Closeness,
    Loudest,
    BiTriDN,
    StreamDN,
]


def edges(transport: str, turn: str) -> None:
    """The same of programs that keep values on edges, or look through rows of neighbours: half of all runs."""
    for i, made in enumerate(EDGE_PROGRAMS):
        for j, sample in enumerate([*GRAPHS, "parallel_edges_undirected"]):
            if (i + j) % 2 == int(turn) % 2:
                options = {"partitioner": METHODS[(i + j) % 3], "direction": DIRECTIONS[(i + j) % 3]}
                check_edges(made(), sample, transport, **options)
    tell("runs with edges agree")


def check_edges(program: Vertex, sample: str, transport: str, **options: Any) -> None:
    """Run a program on all ranks, and compare rank 0's result, what is kept on edges too."""
    group = world()
    options["max_supersteps"] = 100  # StreamDN's 6,760 on skewed graphs take minutes where hosts direct them
    found = run(program, BATTERY[sample].build(group=group), device="cuda", transport=transport, **options)
    if group.rank == 0:
        judge = run(program, BATTERY[sample].build(group=Alone()), device="cpu", max_supersteps=100)
        try:
            assert found.device == "cuda"
            assert_same(found, judge, exact=False)
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} on {sample}, {group.size} ranks, {options}")
            raise


def edge_logs(transport: str, folder: str) -> None:
    """Save after every superstep, and go on from the first log."""
    group = world()
    sample = BATTERY["hub_on_a_partition_border"]
    for made in (Marks, Mirrors, Returns):
        log = Checkpoint(f"{folder}/{made.__name__}", every=1)
        options: dict[str, Any] = {"device": "cuda", "transport": transport, "checkpoint": log}
        run(made(), sample.build(group=group), max_supersteps=1, **options)
        result = run(made(), sample.build(group=group), resume=True, **options)
        if group.rank == 0:
            judge = run(made(), sample.build(group=Alone()), device="python")
            assert_same(judge, result, exact=True)
    tell("3 runs with edges went on")


def logs(transport: str, folder: str) -> None:
    """Save after every superstep, and go on from the second log."""
    group = world()
    named = [program_for(name, "skewed") for name in ("pagerank", "bfs", "coreness", "wcc", "jump")]
    for program in (*named, Letters(), Fading()):
        sample = BATTERY["skewed"]
        log = Checkpoint(f"{folder}/{type(program).__name__}", every=1)
        options: dict[str, Any] = {"device": "cuda", "transport": transport, "checkpoint": log}
        begun = run(program, sample.build(group=group), max_supersteps=2, **options)
        assert len(begun.saves) >= 1
        result = run(program, sample.build(group=group), resume=True, **options)
        if group.rank == 0:
            judge = run(program, sample.build(group=Alone()), device="python")
            assert_same(judge, result, exact=False, only_better=True)
    tell("7 runs went on")


MASTERS: list[Vertex] = [
    master_programs.Waves(),
    master_programs.Budget(),
    master_programs.Sleeper(),
    master_programs.Unheard(),
    master_programs.HeldBack(),
    master_programs.Gone(),
    master_programs.Floods(),
    Fading(),
    Letters(),
    master_programs.Vanished(),
    KCore(),
    SCC(),
]


def masters(transport: str, folder: str) -> None:
    """Run programs with a master() or next_phase(), whole and from a log in the middle; and one without a result."""
    group = world()
    for i, program in enumerate(MASTERS):
        name = ("skewed", "grid", "isolated")[i % 3]
        graph = BATTERY[name].build(group=group)
        options: dict[str, Any] = {"device": "cuda", "transport": transport}
        found = [run(program, graph, direction=direction, **options) for direction in DIRECTIONS]
        saved = {**options, "checkpoint": Checkpoint(f"{folder}/{type(program).__name__}", every=1)}
        run(program, graph, max_supersteps=1, **saved)
        found.append(run(program, graph, resume=True, **saved))
        if group.rank == 0:
            judge = run(program, BATTERY[name].build(group=Alone()), device="python")
            for result in found:
                assert_same(result, judge, exact=False)
                assert (result.aggregators, result.reason) == (judge.aggregators, judge.reason), program
    if transport == "peer":  # where all ranks find it
        with pytest.raises(ComputeError, match=r"in master\(\), superstep 2"):
            run(Exhausts(), BATTERY["grid"].build(group=group), device="cuda", transport=transport)
    tell(f"{len(MASTERS)} masters agree")


class Exhausts(Vertex):
    """Its master() divides by zero after superstep 2."""

    rest: Shared[int] = 0

    def compute(self, messages):
        if self.rest < 0:
            self.vote_to_halt()

    def master(self):
        self.rest = 7 // (2 - self.superstep)


class Shouter(Vertex, message=int):
    """Vertex 0 alone has more to say than there is room for, and more each time."""

    heard: State[int] = 0
    letters: State[int] = 0
    said = Aggregator.sum(int)

    def compute(self, messages):
        for m in messages:
            self.heard += m
            self.letters += 1
        self.said += 1
        if self.superstep < 3:
            if self.id == 0:
                for i in range(5000 * (1 + self.superstep)):
                    self.send_to(i % self.num_vertices, i)
        else:
            self.vote_to_halt()


def direct_messages(transport: str, folder: str) -> None:
    """Post more than there is room for, on all ranks or on one, and go on from a log in the middle."""
    group, size, copies = world(), 40, 3000
    ring = np.arange(size)
    writers, numbers = np.meshgrid(ring, np.arange(copies), indexing="ij")
    heard, sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for superstep in range(3):
        targets = (writers * 7 + numbers * 13 + superstep) % size
        np.add.at(heard, targets, 1)
        np.add.at(sums, targets, writers + numbers)
    told, of_one = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for superstep in range(3):
        words = np.arange(5000 * (1 + superstep))
        np.add.at(told, words % size, 1)
        np.add.at(of_one, words % size, words)
    for turn in range(2):  # the second finds memory that the first has left
        graph = Graph.from_edges(ring, np.roll(ring, -1), group=group)
        options: dict[str, Any] = {"device": "cuda", "transport": transport, "partitioner": METHODS[turn]}
        flood = run(Flood(copies=copies), graph, **options)
        total = run(FloodSum(copies=copies), graph, **options)
        saved = {**options, "checkpoint": Checkpoint(f"{folder}/{turn}", every=1)}
        run(Shouter(), graph, max_supersteps=2, **saved)
        one = run(Shouter(), graph, resume=True, **saved)
        if group.rank == 0:
            assert flood["letters"].tolist() == heard.tolist()
            assert flood["total"].tolist() == total["total"].tolist() == sums.tolist()
            assert [s.messages for s in flood.stats] == [size * copies] * 3 + [0]
            assert (one["letters"].tolist(), one["heard"].tolist()) == (told.tolist(), of_one.tolist())
            assert one.aggregators == {"said": size}
            assert [s.messages for s in one.stats] == [5000, 10000, 15000, 0]
    tell("all heard")


class Stray(Vertex, message=int):
    """One vertex writes to nobody, in superstep 1."""

    def compute(self, messages):
        if self.superstep == 1 and self.id == 3:
            self.send_to(4711, 1)
        if self.superstep == 2:
            self.vote_to_halt()


def stray(transport: str, _: str) -> None:
    """Write to a vertex that is not in the graph."""
    graph = Graph.from_edges(np.arange(99), np.arange(1, 100), group=world())
    run(Stray(), graph, device="cuda", transport=transport)


def faults(transport: str, _: str) -> None:
    """Run every program whose arithmetic has no result: all ranks raise the same error, and go on."""
    for name, case in CASES.items():
        with pytest.raises(ComputeError) as caught:
            run(case.program(), case.graph(world()), device="cuda", transport=transport, partitioner="hash")
        assert_named(caught.value, case)
        assert len(set(world().all_gather(str(caught.value)))) == 1, name
    tell(f"{len(CASES)} faults named on all ranks")


def one_fault(transport: str, name: str) -> None:
    """Run one of them."""
    case = CASES[name]
    run(case.program(), case.graph(world()), device="cuda", transport=transport)


def supersteps(transport: str, count: str) -> None:
    """Pass many small supersteps, with the statistics of each."""
    length = int(count)
    graph = Graph.from_edges(np.arange(length - 1), np.arange(1, length), group=world())
    result = run(BFS(source=0), graph, device="cuda", transport=transport, partitioner="hash")
    if world().rank == 0:
        assert result["level"].tolist() == list(range(length))
        assert result.supersteps == length
        assert sum(s.bytes_moved for s in result.stats) > 0
        assert all(s.active == 1 for s in list(result.stats)[1:])
    tell(f"{length} supersteps")


class Slow(Vertex, message=int):
    """One vertex takes its time in each superstep."""

    count: State[int] = 0
    made: State[int] = 0

    def compute(self, messages):
        turns = 2_000_000 if self.id == 0 else 1
        total = 0
        for i in range(turns):
            total = (total * 31 + i + self.superstep) % 1_000_003
        self.made = total
        self.count += 1
        if self.superstep == 3:
            self.vote_to_halt()


def unequal(transport: str, _: str) -> None:
    """Wait for a rank that is slower than the others."""
    graph = Graph.from_edges(np.arange(99), np.arange(1, 100), group=world())
    result = run(Slow(), graph, device="cuda", transport=transport)
    if world().rank == 0:
        assert result["count"].tolist() == [4] * 100
    tell("waited")


class Forever(Vertex, message=int):
    """Everybody is active for ever."""

    count: State[int] = 0

    def compute(self, messages):
        self.count += 1


def forever(transport: str, _: str) -> None:
    """Run until somebody is killed."""
    graph = Graph.from_edges(np.arange(99), np.arange(1, 100), group=world())
    run(Forever(), graph, device="cuda", transport=transport, progress=ready)


def ready(stats: Any) -> None:
    """Say once that the run is under way."""
    if len(stats) >= 3 and not getattr(ready, "told", False):
        ready.told = True  # type: ignore[attr-defined]
        print("ready", flush=True)


def lost(transport: str, seconds: str) -> None:
    """Let a kernel lose patience with rank 1, which stays alive and does not come."""
    from sigps.engine.gpu import peers as gpu_peers

    gpu_peers._LONGEST_WAIT = float(seconds)
    if world().rank == 1:
        launches = gpu_peers.GpuPeerEngine._launches

        def late(*args: Any) -> Any:
            time.sleep(3 * float(seconds))
            return (yield from launches(*args))

        gpu_peers.GpuPeerEngine._launches = late  # type: ignore[method-assign]
    graph = Graph.from_edges(np.arange(99), np.arange(1, 100), group=world())
    try:
        run(BFS(source=0), graph, device="cuda", transport=transport)
    except SigpsError as error:
        tell(f"{type(error).__name__}: {error}")
        raise


def slow_release(transport: str, seconds: str) -> None:
    """Release a bucket later on the last rank than on others, which must not publish before it has."""
    from sigps.engine.gpu.priority import GpuBuckets

    group, release = world(), GpuBuckets.release

    def late(self: GpuBuckets, *args: Any) -> tuple[int, int]:
        time.sleep(float(seconds))
        return release(self, *args)

    if group.rank == group.size - 1:
        GpuBuckets.release = late  # type: ignore[method-assign]
    for direction in ("push", "pull"):
        check("wcc", "isolated", transport, direction=direction, partitioner="hash")
        check("wcc", "grid", transport, direction=direction, partitioner="hash")
    tell("none came too early")


class Partly(Vertex, message=float):
    """All send at first, and later none: the last supersteps have no senders."""

    value: State[float] = 1.0
    total = Aggregator.sum(float)

    def compute(self, messages):
        self.value = 0.5 * self.value + 0.25 * sum(messages) / max(1, self.in_degree)
        self.total += self.value
        if self.superstep < 4:
            self.send_to_neighbors(self.value)
        elif self.superstep == 9:
            self.vote_to_halt()


def tiles(transport: str, turn: str) -> None:
    """Pull over tiles, in segments so small that there are many, of ghosts too; judged by CPU cores and by rows."""
    from sigps.engine.gpu import placement
    from sigps.engine.gpu.tiling import Tiling, record_bytes_of

    group, asked = world(), []

    def choose(compiled: Any, *, num_blocks: int, **_: Any) -> Tiling:
        asked.append(Tiling(32 << int(turn), num_blocks, record_bytes_of(compiled), always=True))
        return asked[-1]

    rng = np.random.default_rng(7)
    sources, targets = ((rng.random(60_000) ** power * 3000).astype(np.int64) for power in (4, 2))
    options: dict[str, Any] = {"device": "cuda", "transport": transport}
    programs = (
        (PageRank(iterations=6), "rank"),
        (PersonalisedPageRank(source=1), "rank"),
        (EigenvectorCentrality(iterations=8), "score"),
        (Partly(), "value"),
    )
    for directed in (False, True):
        graph = Graph.from_edges(sources, targets, directed=directed, group=group)
        whole = Graph.from_edges(sources, targets, directed=directed, group=Alone())
        for program, field in programs:
            for precision, rtol in (("double", 1e-9), ("single", 1e-4)):
                options |= {"precision": precision, "partitioner": METHODS[int(turn) % 3]}
                found = {}
                for way in ("tiles", "rows"):
                    with pytest.MonkeyPatch.context() as patched:
                        patched.setattr(
                            placement, "choose_tiling", choose if way == "tiles" else lambda *_, **o: None
                        )
                        found[way] = run(program, graph, **options)
                if group.rank == 0:
                    judge = run(program, whole, device="cpu")
                    assert found["tiles"].supersteps == judge.supersteps == found["rows"].supersteps
                    for way in found:
                        np.testing.assert_allclose(found[way][field], judge[field], rtol=rtol, err_msg=way)
    assert len(asked) == 4 * len(programs)
    with pytest.raises(ConfigError, match="a pull ends where its result is known"):
        run(BFS(source=0), graph, tiles="always", **options)
    weights = rng.random(sources.size)
    graph = Graph.from_edges(sources, targets, weights=weights, directed=False, group=group)
    found = run(
        HeatDiffusion(source=0, rate=1e-4), graph, tiles="always", **options | {"precision": "double"}
    )
    if group.rank == 0:
        whole = Graph.from_edges(sources, targets, weights=weights, directed=False, group=Alone())
        judge = run(HeatDiffusion(source=0, rate=1e-4), whole, device="cpu")
        np.testing.assert_allclose(found["heat"], judge["heat"], rtol=1e-9)
    tell(f"{len(asked)} runs over tiles agree")


def tiles_logs(transport: str, folder: str) -> None:
    """A log of a run over tiles goes on over tiles and over rows, and one of rows over tiles."""
    group, program = world(), PageRank(iterations=9)
    rng = np.random.default_rng(3)
    sources, targets = ((rng.random(20_000) ** power * 900).astype(np.int64) for power in (4, 2))
    graph = Graph.from_edges(sources, targets, directed=False, group=group)
    for first, second in (("always", "always"), ("always", "never"), ("never", "always")):
        log = Checkpoint(Path(folder) / f"{first}-{second}", every=2)
        how: dict[str, Any] = {"device": "cuda", "transport": transport, "checkpoint": log}
        run(program, graph, max_supersteps=5, tiles=first, **how)
        found = run(program, graph, resume=True, tiles=second, **how)
        if group.rank == 0:
            whole = Graph.from_edges(sources, targets, directed=False, group=Alone())
            np.testing.assert_allclose(found["rank"], run(program, whole, device="cpu")["rank"], rtol=1e-9)
    tell("3 runs over tiles went on")


def component_graphs(group: Any) -> dict[str, Graph]:
    """Return graphs whose components are found at once on several GPUs, of many shapes."""
    draw = np.random.default_rng(7)
    order, few = draw.permutation(50_000), draw.integers(0, 90_000, (2, 60_000))
    directed = draw.integers(0, 30_000, (2, 40_000)) * 3 + 5
    stars = np.repeat([0, 1, 2], [30_000, 20_000, 10_000]), np.arange(3, 60_003)
    ends = np.stack(np.triu_indices(80, 1))
    cliques = (np.arange(30)[:, None, None] + 30 * ends[None]).transpose(1, 0, 2).reshape(2, -1)
    return {
        "grid": generate("grid", rows=210, columns=170, group=group),
        "path": Graph.from_edges(order[:-1], order[1:], directed=False, group=group),
        "small parts": Graph.from_edges(*few, directed=False, group=group),
        "directed": Graph.from_edges(*directed, group=group),
        "stars": Graph.from_edges(*stars, directed=False, group=group),
        "cliques": Graph.from_edges(*cliques, directed=False, group=group),
        "kronecker": generate("rmat", scale=14, group=group),
    }


def components(transport: str, _: str) -> None:
    """Find components at once, three times by each partitioner: threads meet in another order each time."""
    group = world()
    graphs, whole = component_graphs(group), component_graphs(Alone()) if group.rank == 0 else {}
    for name, graph in graphs.items():
        for method in METHODS[:3]:
            options: dict[str, Any] = {"device": "cuda", "transport": transport, "partitioner": method}
            found = [
                run(WCC(), graph, precision=precision, **options) for precision in ("single", "double") * 3
            ]
            if group.rank == 0:
                judge = run(WCC(), whole[name], device="cpu", asynchronous=False)
                for result in found:
                    assert [s.direction for s in result.stats][1:] == ["at once"], (name, method)
                    np.testing.assert_array_equal(
                        result["component"], judge["component"], f"{name}, {method}"
                    )
                    assert result.stats[-1].messages == judge.stats[0].messages, (name, method)
                    changed = (judge["component"] != judge.ids).sum()
                    assert result.stats[-1].active == changed, (name, method)
    one = Graph.from_edges(np.arange(30_000), np.arange(1, 30_001), directed=False, group=group)
    last = group.size - 1
    result = run(
        WCC(), one, device="cuda", transport=transport, partitioner=lambda ids: np.full(ids.size, last)
    )
    if group.rank == 0:
        assert not result["component"].any()
        assert [s.direction for s in result.stats][1:] == ["at once"]
    tell(f"components of {len(graphs)} graphs")


def many(transport: str, _: str) -> None:
    """Runs are shared out: what each rank has is that of the runs by themselves, on one rank."""
    group = world()
    for name, (cls, varied) in MANY.items():
        for sample in ("skewed", "grid"):
            built = BATTERY[sample].build(group=group)
            found = run_many(cls, built, device="cuda", transport=transport, **varied)
            assert found.one_by_one == "", (name, found.one_by_one)
            whole = BATTERY[sample].build(group=Alone())
            judges = run_many(cls, whole, device="cpu", threads=1, **varied)
            for result, judge in zip(found, judges, strict=True):
                assert result.device == "cuda"
                assert (result.reason, result.supersteps) == (judge.reason, judge.supersteps)
                at = np.isin(np.asarray(judge.ids), np.asarray(result.ids))
                assert at.all() or group.rank > 0
                for field in judge.fields:
                    np.testing.assert_array_equal(result[field], judge[field][at])
                if group.rank == 0 and cls.declaration.edge_states:
                    for field in judge.edges.fields:
                        np.testing.assert_array_equal(result.edges[field], judge.edges[field])
    tell(f"{len(MANY)} programs ran shared out")


def many_too_large(transport: str, _: str) -> None:
    """Where the whole graph does not fit a rank's part of its GPU, runs go one at a time, and it says by how much."""
    graph = BATTERY["skewed"].build(group=world())
    GpuSpec.memory_of_rank = lambda *given: 1 << 12  # type: ignore[method-assign]
    found = run_many(BFS, graph, device="cuda", transport=transport, source=[0, 7, 3])
    assert "takes more of a rank's device's memory than 4.0 KiB" in found.one_by_one, found.one_by_one
    judges = run_many(BFS, BATTERY["skewed"].build(group=Alone()), device="cpu", source=[0, 7, 3])
    if world().rank == 0:
        np.testing.assert_array_equal(found["level"], judges["level"])
    tell("one at a time")


def live_graph(name: str, group: Any) -> Graph:
    """Return a graph for streams: meshes, hubs, directed edges, weights of 0 and fractions."""
    draw = np.random.default_rng(len(name))
    if name == "kronecker":
        return generate("rmat", scale=12, weights="random", group=group)
    if name == "grid":
        return generate("grid", rows=90, columns=70, weights="random", group=group)
    ends = (5000 * draw.random((2, 20_000)) ** (6 if name == "hubs" else 1)).astype(int)
    kinds = {"directed": [1, 2, 9], "hubs": [5], "zeros": [0, 0, 1], "fractions": [0.5, 1e-20, 3.0]}
    weights = draw.choice(kinds[name], 20_000)
    return Graph.from_edges(*ends, weights, vertices=range(5000), directed=name == "directed", group=group)


def streams(transport: str, turn: str) -> None:
    """Let streams follow batches on all ranks, whole results and parts; compare with runs on graphs built anew."""
    group, count = world(), 0
    for i, name in enumerate(("kronecker", "grid", "directed", "hubs", "zeros", "fractions")):
        for program, field in ((SSSP(source=0), "distance"), (WCC(), "component"), (BFS(source=0), "parent")):
            if isinstance(program, WCC) and name == "directed":
                continue
            graph = live_graph(name, group)
            whole = live_graph(name, Alone()) if group.rank == 0 else None
            draw, n = np.random.default_rng(int(turn)), graph.num_vertices
            gathers = i % 2 > 0
            how: dict[str, Any] = {"device": "cuda", "transport": transport, "gather": gathers}
            with stream(program, graph, guard="incremental", asynchronous=False, **how) as live:
                for size in (1, 40, 3, 1000, 1, 300):
                    inserts = *draw.integers(0, n, (2, size)), draw.choice([1, 2, 5], size)
                    at = draw.integers(0, n - 70, size)
                    step = 70 if name == "grid" else 1
                    deletes = np.append(at, 0), np.append(at + step, step)
                    result = live.apply(inserts=inserts, deletes=deletes)
                    assert result.path == "incremental", result.why
                    parts = group.all_gather([result.ids.tolist(), result[field].tolist()])
                    changed = group.all_gather(result.changed_ids.tolist())
                    if whole is None:
                        continue
                    before = run(program, whole, device="cpu", asynchronous=False)
                    whole = whole.apply(inserts, deletes)
                    judge = run(program, whole, device="cpu", asynchronous=False)
                    used = parts[:1] if gathers else parts
                    found = {v: value for ids, values in used for v, value in zip(ids, values, strict=True)}
                    assert found == dict(zip(judge.ids.tolist(), judge[field].tolist(), strict=True)), name
                    moved = judge.ids[before[field] != judge[field]].tolist()
                    told = changed[:1] if gathers else changed
                    assert set(moved) <= {v for ids in told for v in ids}, name
                    count += 1
    tell(f"{count} batches followed")


def tell(text: str) -> None:
    """Print on rank 0."""
    if world().rank == 0:
        print(text, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
