"""Aggregators that shared memory does not hold are refused by name: kernels do not link."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from kernel_compiling import shared_bytes
from packed_runs import on_ranks
from turns import in_turn

import sigps
from sigps import Aggregator, ConfigError, DeviceError, State, Vector, Vertex
from sigps.compiler.cpu.exact import with_exact_sums
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.choice import bytes_of_totals, find_gpu_obstacle, most_totals
from sigps.engine.gpu.variant import LeaseForm, _shapes_and_macros
from sigps.system.transport import needs_hosts


class Wide(Vertex, message=int):
    """Walks its edges, sends to the least of its neighbours, and counts in as many cells as there may be."""

    got: State[int] = 0
    wide = Aggregator.sum(Vector[int, 128])

    def compute(self, messages):
        self.count_and_tell(sum(messages))

    def count_and_tell(self, got):
        self.got += got
        self.wide[self.id % 128] += 1
        least = self.id
        for edge in self.out_edges:
            least = min(least, edge.target)
        if self.superstep < 2:
            self.send_to(least, 1)
        self.vote_to_halt()


class Wider(Wide):
    """With one more number."""

    more = Aggregator.sum(int)

    def compute(self, messages):
        self.more += 1
        self.count_and_tell(sum(messages))


def test_programs_that_walk_and_send_to_single_vertices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = sigps.generate("grid", rows=9, columns=9)
    graph.save(tmp_path / "store", packed=True, order="given")
    host_gpu.use_host_as_gpu(monkeypatch)
    options = {"device": "cuda", "stream": "always"}
    found = sigps.run(Wide(), sigps.load(tmp_path / "store"), **options)
    assert found["got"].tolist() == sigps.run(Wide(), graph, device="python")["got"].tolist()
    with pytest.raises(ConfigError, match=r"aggregators of Wider have [0-9,]+ bytes, more than the 1,024"):
        sigps.run(Wider(), sigps.load(tmp_path / "store"), transfer="bulk", **options)
    with pytest.raises(ConfigError, match="aggregators of Wide have 1,024 bytes, more than the 512"):
        on_ranks(2, Wide(), tmp_path / "store", stream="always", transfer="bulk")


def sends_along_edges(count: int) -> Vertex:
    class Sums(Vertex, message=int):
        got: State[int] = 0
        wide = Aggregator.sum(Vector[int, count])

        def compute(self, messages):
            self.wide[self.id % count] += 1
            self.got += sum(messages)
            if self.superstep < 3:
                for edge in self.out_edges:
                    self.send(edge, self.got)
            self.vote_to_halt()

    return Sums()


def sends_vectors(count: int) -> Vertex:
    class Vectors(Vertex, message=Vector[float, 128]):
        value: State[Vector[float, 128]] = 1.0
        wide = Aggregator.sum(Vector[int, count])

        def compute(self, messages):
            self.wide[self.id % count] += 1
            self.value = 0.5 * sum(messages)
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.value)

    return Vectors()


def sends_to_single_vertices(count: int) -> Vertex:
    class Single(Vertex, message=int):
        got: State[int] = 0
        wide = Aggregator.sum(Vector[int, count])

        def compute(self, messages):
            self.wide[self.id % count] += 1
            self.got += sum(messages)
            least = self.id
            for edge in self.out_edges:
                least = min(least, edge.target)
            if self.superstep < 2:
                self.send_to(least, 1)
            self.vote_to_halt()

    return Single()


def reads_lists(count: int) -> Vertex:
    class Lists(Vertex, message=int):
        got: State[int] = 0
        wide = Aggregator.sum(Vector[int, count])

        def compute(self, messages):
            self.wide[self.id % count] += 1
            for message in messages:
                self.got = (3 * self.got + message) % 1000
            if self.superstep < 2:
                for edge in self.out_edges:
                    self.send(edge, self.got)
            self.vote_to_halt()

    return Lists()


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
@pytest.mark.parametrize(
    ("made", "has_peers"),
    [
        *((sends_along_edges, has_peers) for has_peers in (False, True)),
        *in_turn([sends_vectors, sends_to_single_vertices, reads_lists], [True, False]),
    ],
)
def test_what_is_not_refused_has_room(made: Any, has_peers: bool) -> None:
    """And not much more would have; links for sm_90 take what is declared, give or take 100 bytes."""
    most = most_totals(analyse(made(1), "double"), has_peers=has_peers) // 8
    program = analyse(made(most), "double")
    assert most_totals(program, has_peers=has_peers) == bytes_of_totals(program)
    compiled = compile_for_cuda(program, {"weight": np.dtype(np.uint8)}, narrow_ids=False, arch="sm_90")
    forms = [LeaseForm(has_peers=has_peers)]
    if made is sends_along_edges:
        forms.append(LeaseForm(has_peers=has_peers, **{"has_tiles" if has_peers else "goes_by_edge": True}))
    for form in forms:
        *_, macros = _shapes_and_macros(compiled, "sm_90", form)
        assert 40_000 < shared_bytes(compiled, "lease", macros) <= 49_152 - 256


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_a_cluster_has_room_for_what_it_is_given() -> None:
    form = LeaseForm(is_mesh=True)
    for count, has_cluster in ((160, True), (161, False)):
        program = analyse(sends_along_edges(count), "double")
        compiled = compile_for_cuda(program, {}, narrow_ids=False, arch="sm_90")
        *_, macros = _shapes_and_macros(compiled, "sm_90", form)
        assert (macros["SIGPS_CLUSTER_THREADS"] != "0") == has_cluster
        assert shared_bytes(compiled, "lease", macros) <= 49_152 - 256


def test_what_does_not_fit_in_memory_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.generate("grid", rows=9, columns=9)
    most = 1464 // 8
    program = sends_along_edges(most)
    found = sigps.run(program, graph, device="cuda", stream="never")
    assert found["got"].tolist() == sigps.run(program, graph, device="python")["got"].tolist()
    refused = (
        f"aggregators of {8 * (most + 1):,} bytes, of which the shared memory of a block holds {8 * most:,}"
    )
    with pytest.raises(DeviceError, match=f"{refused}.*use device='cpu'"):
        sigps.run(sends_along_edges(most + 1), graph, device="cuda", stream="never")


def test_floats_that_are_summed_exactly_take_four_numbers() -> None:
    class Floats(Vertex, message=int):
        got: State[int] = 0
        wide = Aggregator.sum(Vector[float, 50])
        largest = Aggregator.max(Vector[float, 3])

        def compute(self, messages):
            self.wide[self.id % 50] += 1.5
            self.largest[self.id % 3] += 1.5
            self.got += sum(messages)

    program = analyse(Floats(), "double")
    assert bytes_of_totals(program) == 8 * 53
    assert bytes_of_totals(program, True) == bytes_of_totals(with_exact_sums(program, {})) == 8 * 203
    assert find_gpu_obstacle(program, False) is None
    assert "1,624 bytes" in (find_gpu_obstacle(program, True) or "")


def test_more_than_peers_have_room_for_goes_by_hosts() -> None:
    """Which send what kernels cannot; they are told by the program alone, also where peers were asked for."""
    for made, most in ((sends_along_edges, 1128 // 8), (sends_to_single_vertices, 824 // 8)):
        assert not needs_hosts(analyse(made(most)))
        assert needs_hosts(analyse(made(most + 1)))
