"""The plain kernel on a GPU: states and supersteps are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from adapter_judge import GRAPHS, ON_EDGES, PROGRAMS, assert_as_interpreted, assert_kept_as_interpreted
from cuda_twin import Memory, Superstep

from sigps.compiler.cuda.adapters import Layout
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.program import VertexProgram

pytestmark = pytest.mark.gpu

driver = pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)


def checked(outcome: tuple[Any, ...]) -> Any:
    """Return what a driver call gives, after its error code."""
    assert outcome[0] == driver.CUresult.CUDA_SUCCESS, outcome[0]
    return outcome[1] if len(outcome) == 2 else outcome[1:]


class Device:
    """The first GPU, as little of it as a test needs."""

    def __init__(self) -> None:
        try:
            checked(driver.cuInit(0))
            self.device = checked(driver.cuDeviceGet(0))
        except (AssertionError, RuntimeError, ImportError) as error:
            pytest.skip(f"no GPU: {error}")
        self.context = checked(driver.cuDevicePrimaryCtxRetain(self.device))
        checked(driver.cuCtxSetCurrent(self.context))
        attribute = driver.CUdevice_attribute
        major = attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        minor = attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        numbers = [checked(driver.cuDeviceGetAttribute(a, self.device)) for a in (major, minor)]
        self.arch = f"sm_{numbers[0]}{numbers[1]}"


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


class OnDevice:
    """One superstep: everything goes to the GPU, is computed there, and comes back."""

    def __init__(self, device: Device, cubin: bytes) -> None:
        checked(driver.cuCtxSetCurrent(device.context))
        self._module = checked(driver.cuModuleLoadData(cubin))
        self._kernel = checked(driver.cuModuleGetFunction(self._module, b"gather_reference"))

    def __call__(self, m: Memory, superstep: int) -> None:
        there: dict[int, tuple[Any, Any]] = {}

        def address(array: Any) -> int:
            if id(array) not in there:
                memory = checked(driver.cuMemAlloc(max(16, array.nbytes)))
                there[id(array)] = (array, memory)
                if array.nbytes:
                    checked(driver.cuMemcpyHtoD(memory, array.ctypes.data, array.nbytes))
            return int(there[id(array)][1])

        arrays = [m.offsets, m.sources, m.messages, m.status, m.sent, m.records, m.next_sent, m.next_records]
        arrays += [m.given, m.ran]
        values = [m.arguments(address), np.int64(superstep), np.uint32(len(m.status))]
        parameters = [np.array(v) for v in values] + [np.array(address(a), np.uint64) for a in arrays]
        pointers = np.array([p.ctypes.data for p in parameters], np.uint64)
        launched = driver.cuLaunchKernel(self._kernel, 2, 1, 1, 32, 1, 1, 0, 0, pointers.ctypes.data, 0)
        checked(launched)
        checked(driver.cuCtxSynchronize())
        for array, memory in there.values():
            if array.nbytes and array.flags.writeable:
                checked(driver.cuMemcpyDtoH(array.ctypes.data, memory, array.nbytes))
            checked(driver.cuMemFree(memory))


def on_device(device: Device, narrow_ids: bool) -> Callable[[VertexProgram, Layout], Superstep]:
    columns = {"weight": np.dtype(np.float64), "capacity": np.dtype(np.int32)}

    def superstep(program: VertexProgram, layout: Layout) -> Superstep:
        compiled = compile_for_cuda(program, columns, narrow_ids=narrow_ids, arch=device.arch)
        assert (compiled.slots, compiled.record) == (layout.slots.stored, layout.record.stored)
        return OnDevice(device, link(compiled, "gather_reference", device.arch))

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
