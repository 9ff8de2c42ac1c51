"""The first GPU, as little of it as a test of plain kernels needs: nothing of the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_twin import Memory

__all__ = ["Device", "Launch", "OnDevice", "outcome_of"]


def checked(outcome: tuple[Any, ...]) -> Any:
    """Return what a driver call gives, after its error code."""
    assert int(outcome[0]) == 0, outcome[0]
    return outcome[1] if len(outcome) == 2 else outcome[1:]


class Device:
    """The first GPU. Skips the test where there is none."""

    def __init__(self) -> None:
        driver = pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
        try:
            checked(driver.cuInit(0))
            self.device = checked(driver.cuDeviceGet(0))
        except (AssertionError, RuntimeError, ImportError) as error:
            pytest.skip(f"no GPU: {error}")
        self.driver = driver
        self.context = checked(driver.cuDevicePrimaryCtxRetain(self.device))
        checked(driver.cuCtxSetCurrent(self.context))
        attribute = driver.CUdevice_attribute
        major = attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        minor = attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        numbers = [checked(driver.cuDeviceGetAttribute(a, self.device)) for a in (major, minor)]
        self.arch = f"sm_{numbers[0]}{numbers[1]}"


class Launch(NamedTuple):
    """One kernel: arrays are passed as addresses of their copies on the device, scalars as they are."""

    kernel: str
    blocks: int
    threads: int
    parameters: list[Any]


Address = Callable[[Any], int]

OUTCOME = np.dtype([(name, np.uint64) for name in ("status", "next_sent", "next_records", "given", "ran")])


def outcome_of(m: Memory, address: Address) -> Any:
    """Return a filled `ReferenceOutcome` (`reference.cuh`)."""
    outcome = np.zeros((), OUTCOME)
    for name in OUTCOME.names or ():
        outcome[name] = address(getattr(m, name))
    return outcome


class OnDevice:
    """One superstep: everything goes to the GPU, is computed there, and comes back."""

    def __init__(
        self, device: Device, cubin: bytes, launches: Callable[[Memory, int, Address], list[Launch]]
    ) -> None:
        self._driver, self._launches = device.driver, launches
        checked(self._driver.cuCtxSetCurrent(device.context))
        self._module = checked(self._driver.cuModuleLoadData(cubin))

    def __call__(self, memory: Memory, superstep: int) -> None:
        driver = self._driver
        there: dict[int, tuple[Any, Any]] = {}

        def address(array: Any) -> int:
            if id(array) not in there:
                at = checked(driver.cuMemAlloc(max(16, array.nbytes)))
                there[id(array)] = (array, at)
                if array.nbytes:
                    checked(driver.cuMemcpyHtoD(at, array.ctypes.data, array.nbytes))
            return int(there[id(array)][1])

        for launch in self._launches(memory, superstep, address):
            values = [
                np.array(address(p), np.uint64) if np.ndim(p) else np.array(p) for p in launch.parameters
            ]
            pointers = np.array([value.ctypes.data for value in values], np.uint64)
            kernel = checked(driver.cuModuleGetFunction(self._module, launch.kernel.encode()))
            shape = launch.blocks, 1, 1, launch.threads, 1, 1
            checked(driver.cuLaunchKernel(kernel, *shape, 0, 0, pointers.ctypes.data, 0))
        checked(driver.cuCtxSynchronize())
        for array, at in there.values():
            if array.nbytes and array.flags.writeable:
                checked(driver.cuMemcpyDtoH(array.ctypes.data, at, array.nbytes))
            checked(driver.cuMemFree(at))
