"""The plain push: states and supersteps are the interpreter's, as Python on the host and as kernels on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from adapter_judge import PROGRAMS, assert_as_interpreted
from cuda_device import Address, Device, Launch, OnDevice, outcome_of
from cuda_twin import Memory, Pushed, Superstep

from sigps.compiler.cuda.adapters import Layout
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery, VertexProgram

COLUMNS = {"weight": np.dtype(np.float64), "capacity": np.dtype(np.int32)}


def combines_along_edges(program: VertexProgram) -> bool:
    is_pushed = program.delivery is not Delivery.DIRECT and program.consumption is not Consumption.LISTED
    return is_pushed and not program.reads_neighbors


PUSHED = [name for name, made in PROGRAMS.items() if combines_along_edges(analyse(made()))]


def launches(m: Memory, superstep: int, address: Address) -> list[Launch]:
    n = len(m.status)
    begin = [m.arguments(address, columns="pushed_columns"), np.int64(superstep), np.uint32(n)]
    inboxes = np.zeros((n, max(1, m.layout.slots.structure.itemsize)), np.uint8)
    has = np.zeros(n, np.uint32)
    edges = [m.pointers["out_offsets"], m.pointers["out_rows"]]
    return [
        Launch("scatter_reference", 1, 1, [*begin, *edges, m.status, m.sent, m.records, inboxes, has]),
        Launch("compute_reference", 2, 32, [*begin, inboxes, has, outcome_of(m, address)]),
    ]


def test_some_programs_push() -> None:
    assert {"BFS", "PageRank", "SSSP"} <= set(PUSHED)


@pytest.mark.parametrize("narrow_ids", [False, True])
@pytest.mark.parametrize("name", PUSHED)
def test_the_plain_push_as_python_is_the_interpreters(name: str, narrow_ids: bool) -> None:
    assert_as_interpreted(PROGRAMS[name](), Pushed, narrow_ids)


@pytest.mark.parametrize(
    ("name", "arch"), [(name, f"sm_{80 + 10 * (i % 2)}") for i, name in enumerate(PUSHED)]
)
def test_the_plain_push_links(name: str, arch: str) -> None:
    pytest.importorskip("cuda.core")
    compiled = compile_for_cuda(analyse(PROGRAMS[name]()), COLUMNS, narrow_ids=True, arch=arch)
    cubin = link(compiled, "scatter_reference", arch)
    assert b"scatter_reference" in cubin
    assert b"compute_reference" in cubin


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


def on_device(device: Device, narrow_ids: bool) -> Callable[[VertexProgram, Layout], Superstep]:
    def superstep(program: VertexProgram, layout: Layout) -> Superstep:
        compiled = compile_for_cuda(program, COLUMNS, narrow_ids=narrow_ids, arch=device.arch)
        assert (compiled.slots, compiled.record) == (layout.slots.stored, layout.record.stored)
        return OnDevice(device, link(compiled, "scatter_reference", device.arch), launches)

    return superstep


@pytest.mark.gpu
@pytest.mark.parametrize("narrow_ids", [False, True])
@pytest.mark.parametrize("name", PUSHED)
def test_the_plain_push_is_the_interpreters(name: str, narrow_ids: bool, device: Device) -> None:
    assert_as_interpreted(PROGRAMS[name](), on_device(device, narrow_ids), narrow_ids)
