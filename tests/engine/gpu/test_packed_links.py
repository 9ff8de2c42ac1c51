"""The kernels over packed edges compile, and some link, which takes ten to thirty seconds each; without a GPU."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from column_programs import COLUMNS
from kernel_compiling import assert_compiles, shared_bytes
from keyed_programs import KEYED
from value_programs import VALUES
from walk_programs import WALKS

import sigps
from sigps import inf
from sigps.apps import BFS, CDLP, SSSP, WCC, LabelPropagation, LeidenRound, PageRank, WeightedLabels
from sigps.apps.sssp import Path as Way
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse
from sigps.device.linking import link_kernel
from sigps.engine.gpu.launch import WIDE
from sigps.engine.gpu.memory_plan import shape_over_packed
from sigps.engine.gpu.variant import FED, PEERS, Packing


class Counted(SSSP):
    """With aggregators of as many bytes as packed edges take, messages of 16 and a column: all of shared memory."""

    wide = sigps.Aggregator.sum(sigps.Vector[int, 32])

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.wide[self.id % 32] += 1
        best = min(messages, default=Way(inf, self.id))
        if best.length < self.distance:
            self.distance = best.length
            for edge in self.out_edges:
                self.send(edge, Way(best.length + edge.weight, self.id))


class Mixed(sigps.Vertex, message=sigps.Vector[float, 8]):
    """Combined messages of as many bytes as packed edges take, with as many of aggregators, and a column."""

    value: sigps.State[sigps.Vector[float, 8]] = 1.0
    wide = sigps.Aggregator.sum(sigps.Vector[int, 32])

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.wide[self.id % 32] += 1
        self.value = 0.5 * sum(messages)
        for edge in self.out_edges:
            self.send(edge, edge.weight * self.value)


class Walked(sigps.Vertex, message=sigps.Vector[float, 8]):
    """Direct messages, as many bytes of aggregators as ranks have beside walked edges, and a column."""

    value: sigps.State[sigps.Vector[float, 8]] = 1.0
    wide = sigps.Aggregator.sum(sigps.Vector[int, 64])

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.wide[self.id % 64] += 1
        self.value = 0.5 * sum(messages)
        least = self.id
        for edge in self.out_edges:
            if edge.weight > 0.5:
                least = min(least, edge.target)
        self.send_to(least, self.value)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_over_packed_edges_link() -> None:
    made = PageRank(), WCC(), SSSP(source=0), Mixed(), Counted(source=0), LabelPropagation(), LeidenRound()
    programs = [analyse(program, "double") for program in made]
    form = programs[1].priority_form
    assert form is not None
    linked = programs[1:2]  # the others are compiled
    for program in (*programs, form):
        compiled = compile_for_cuda(program, {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90")
        packing = Packing.PULLED if program in (programs[0], *programs[-2:]) else Packing.PUSHED
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | packing.macros(compiled, has_heads=True)
        if program in linked:
            assert b"run_lease" in link(compiled, "lease", "sm_90", macros)
        else:
            assert_compiles(compiled, "lease", "sm_90", macros)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_that_group_messages_over_packed_edges_compile() -> None:
    """With keys of both sizes, sums that may leave their type, and sums of floats."""
    forms: list[tuple[sigps.Vertex, bool, Packing, dict[str, str]]] = [
        (CDLP(), True, Packing.PULLED, {}),
        (KEYED["votes"], False, Packing.PULLED, FED),
        (WeightedLabels(), False, Packing.PART, PEERS | FED),
    ]
    for program, narrow, packing, more in forms:
        analysed = analyse(program, "double")
        compiled = compile_for_cuda(analysed, {"weight": np.dtype(np.uint8)}, narrow_ids=narrow, arch="sm_90")
        macros = shape_over_packed(analysed).macros() | {"SIGPS_CLUSTER_THREADS": "0"} | more
        macros |= packing.macros(compiled, has_heads=False)
        assert_compiles(compiled, "lease", "sm_90", macros)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_over_packed_edges_of_peers_compile() -> None:
    part, pushed = Packing.PART, Packing.PUSHED_PART
    for program, packing in (
        (BFS(source=0), part),
        (Counted(source=0), part),
        (BFS(source=0), pushed),
        (Counted(source=0), pushed),
    ):
        compiled = compile_for_cuda(
            analyse(program, "double"), {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90"
        )
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"}
        macros |= {} if isinstance(program, BFS) and packing is pushed else PEERS  # by NCCL
        macros |= packing.macros(compiled, has_heads=True) | (FED if packing is part else {})
        assert_compiles(compiled, "lease", "sm_90", macros)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_that_walk_packed_edges_link() -> None:
    """Of direct messages that are listed, sorted or combined, of records, and of programs that send nothing."""
    forms: list[tuple[sigps.Vertex, Packing, dict[str, str], bool]] = [
        (WALKS["lists"], Packing.PULLED, {}, False),
        (WALKS["sorted"], Packing.PULLED, FED, False),
        (WALKS["weights"], Packing.PART, FED, False),
        (Walked(), Packing.PART, PEERS | FED, True),
        (WALKS["silent"], Packing.PULLED, FED, False),
        (WALKS["records"], Packing.PULLED, {}, False),
        (WALKS["listed records"], Packing.PART, PEERS, False),
    ]
    for program, packing, more, links in forms:
        analysed = analyse(program, "double")
        compiled = compile_for_cuda(analysed, {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90")
        macros = (
            WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | packing.macros(compiled, has_heads=False) | more
        )
        if links:
            assert b"run_lease" in link(compiled, "lease", "sm_90", macros)
        else:
            assert_compiles(compiled, "lease", "sm_90", macros)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
@pytest.mark.parametrize(
    ("name", "linked"), [("overflow", FED), ("vectors", None), ("estimates", None), ("forest", None)]
)
def test_kernels_that_keep_values_beside_packed_edges_link(name: str, linked: dict[str, str] | None) -> None:
    """Or compile, with pages in memory and through a ring, on one rank and on several."""
    program = analyse(VALUES[name], "double")
    compiled = compile_for_cuda(program, {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90")
    for more in ({}, FED):
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | more
        for packing in (Packing.PULLED, Packing.PART):
            own = macros | packing.macros(compiled, has_heads=False)
            if more == linked and packing is Packing.PART:
                assert b"run_lease" in link(compiled, "lease", "sm_90", own)
            else:
                assert_compiles(compiled, "lease", "sm_90", own)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_that_bring_values_to_other_ranks_link() -> None:
    cubin = link_kernel("crossing_values", "sm_90")
    assert b"commit_values_warp_mapped" in cubin
    assert b"take_values_thread_mapped" in cubin


class Priced(sigps.Vertex, message=sigps.Vector[float, 8]):
    """As much of messages and aggregators as packed edges take, and as many columns as are read where rows lie."""

    value: sigps.State[sigps.Vector[float, 8]] = 1.0
    wide = sigps.Aggregator.sum(sigps.Vector[int, 32])

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.wide[self.id % 32] += 1
        self.value = 0.5 * sum(messages)
        for edge in self.out_edges:
            self.send(edge, edge.weight * self.value + edge.price)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_that_read_several_columns_have_room() -> None:
    """Of rows in place, which take most of shared memory; and seven columns of whole pages, listed or walked."""
    forms: list[tuple[sigps.Vertex, Packing, dict[str, str], bool]] = [
        (Priced(), Packing.PUSHED_PART, PEERS, True),
        (COLUMNS["every"], Packing.PART, PEERS | FED, False),
        (COLUMNS["heard"], Packing.PULLED, FED, False),
        (COLUMNS["walked"], Packing.PULLED, {}, False),
    ]
    types: dict[str, np.dtype[Any]] = {
        "cost": np.dtype(np.int64),
        "time": np.dtype(np.float64),
        "lanes": np.dtype(np.uint8),
        "steep": np.dtype(np.int16),
        "ratio": np.dtype(np.float32),
        "far": np.dtype(np.int64),
        "price": np.dtype(np.uint8),
    }
    for program, packing, more, takes_most in forms:
        analysed = analyse(program, "double")
        compiled = compile_for_cuda(analysed, types, narrow_ids=True, arch="sm_90")
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | packing.macros(compiled, has_heads=True)
        assert_compiles(compiled, "lease", "sm_90", macros | more)
        if takes_most:  # links for sm_90 take what is declared, give or take 100 bytes
            assert 40_000 < shared_bytes(compiled, "lease", macros | more) <= 49_152 - 256
