"""The plain kernel on a GPU: states and supersteps are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from adapter_judge import (
    GRAPHS,
    ON_EDGES,
    PROGRAMS,
    assert_as_interpreted,
    assert_kept_as_interpreted,
)
from cuda_device import Address, Device, Launch, OnDevice, outcome_of
from cuda_twin import Memory, Superstep

from sigps.compiler.cuda.adapters import Layout
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.program import VertexProgram

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


def launches(m: Memory, superstep: int, address: Address) -> list[Launch]:
    arrays = [m.offsets, m.sources, m.messages, m.sent, m.records]
    begin = [m.arguments(address), np.int64(superstep), np.uint32(len(m.status))]
    return [Launch("gather_reference", 2, 32, [*begin, *arrays, outcome_of(m, address)])]


def on_device(device: Device, narrow_ids: bool) -> Callable[[VertexProgram, Layout], Superstep]:
    columns = {"weight": np.dtype(np.float64), "capacity": np.dtype(np.int32)}

    def superstep(program: VertexProgram, layout: Layout) -> Superstep:
        compiled = compile_for_cuda(program, columns, narrow_ids=narrow_ids, arch=device.arch)
        assert (compiled.slots, compiled.record) == (layout.slots.stored, layout.record.stored)
        return OnDevice(device, link(compiled, "gather_reference", device.arch), launches)

    return superstep


ORDERED = [name for name in PROGRAMS if name != "forward"]
"""Without the program that sends what depends on the order of its messages, which BSP leaves open."""


@pytest.mark.parametrize("narrow_ids", [False, True])
@pytest.mark.parametrize("name", ORDERED)
def test_the_reference_kernel_is_the_interpreters(name: str, narrow_ids: bool, device: Device) -> None:
    assert_as_interpreted(PROGRAMS[name](), on_device(device, narrow_ids), narrow_ids)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("program", ON_EDGES)
def test_what_it_keeps_on_edges_is_the_interpreters(program: str, name: str, device: Device) -> None:
    assert_kept_as_interpreted(ON_EDGES[program], name, on_device(device, narrow_ids=False))
