"""An NVIDIA GPU as a device: what it is, memory on it (CuPy), and kernels from cubins (the CUDA driver)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import DeviceError

__all__ = ["Gpu", "Kernel", "Module", "find_gpu", "is_available", "reachable", "what_is_missing"]


@dataclass(frozen=True)
class Gpu:
    """What the engine needs to know of a GPU.

    Attributes:
        ordinal: Its number among those that this process sees.
        arch: Its architecture, as in `sm_90`.
        num_sms: Its multiprocessors.
        shared_bytes: Shared memory that a block can have.
        gigabytes_per_second: What its memory moves at most.
        bus_id: Its name on this host, whatever number it has in a process.
    """

    ordinal: int
    name: str
    arch: str
    num_sms: int
    shared_bytes: int
    gigabytes_per_second: float = 1000.0
    bus_id: str = ""


def is_available() -> bool:
    """Tell whether programs can run on a GPU here: there is one, and CuPy, numba-cuda and cuda.core."""
    return not what_is_missing()


def find_gpu(ordinal: int = 0) -> Gpu:
    """Return a GPU and make it the current one of this thread.

    Args:
        ordinal: Its number; beyond the last one they are counted from 0 again.

    Raises:
        DeviceError: If there is none, or a package is missing; it says which.
    """
    missing = what_is_missing()
    if missing:
        raise DeviceError(f"device='cuda' cannot be used: {missing}. device='cpu' runs everywhere", rank=0)
    import cupy

    ordinal %= cupy.cuda.runtime.getDeviceCount()
    cupy.cuda.Device(ordinal).use()
    return _gpu(ordinal)


@functools.cache
def _gpu(ordinal: int) -> Gpu:
    import cupy

    seen = cupy.cuda.runtime.getDeviceProperties(ordinal)
    return Gpu(
        ordinal=ordinal,
        name=seen["name"].decode(),
        arch=f"sm_{seen['major']}{seen['minor']}",
        num_sms=seen["multiProcessorCount"],
        shared_bytes=seen["sharedMemPerBlockOptin"],
        gigabytes_per_second=_gigabytes_per_second(ordinal),
        bus_id=_bus_id(ordinal),
    )


def _bus_id(ordinal: int) -> str:
    import cupy

    name = cupy.cuda.runtime.deviceGetPCIBusId(ordinal)
    return name.decode() if isinstance(name, bytes) else str(name)


@functools.cache
def reachable(gpu: Gpu) -> tuple[str, ...]:
    """Return the other GPUs, by their names on this host, whose memory a GPU can write to."""
    import cupy

    runtime = cupy.cuda.runtime
    others = [i for i in range(runtime.getDeviceCount()) if i != gpu.ordinal]
    return tuple(_bus_id(other) for other in others if runtime.deviceCanAccessPeer(gpu.ordinal, other))


def _gigabytes_per_second(ordinal: int) -> float:
    from cuda.bindings import driver

    names = driver.CUdevice_attribute
    kilohertz, bits = (
        _checked(driver.cuDeviceGetAttribute(name, ordinal))
        for name in (
            names.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
            names.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        )
    )
    return float(2 * kilohertz * bits / 8e6) or Gpu.gigabytes_per_second


@functools.cache
def what_is_missing() -> str:
    """Tell what stands in the way of `device="cuda"` here; empty where nothing does.

    Takes under a millisecond where a package or the NVIDIA driver is missing, and a second where CuPy has to say.
    """
    import importlib.util

    packages = {"cupy": "cupy-cuda13x", "numba_cuda": "numba-cuda", "cuda": "cuda-core"}
    absent = [wheel for module, wheel in packages.items() if importlib.util.find_spec(module) is None]
    if absent:
        return f"{', '.join(absent)} not installed (pip install 'sigps[cu13]', or [cu12])"
    if not _has_driver():
        return "no GPU is found (there is no NVIDIA driver: libcuda.so.1 cannot be loaded)"
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU is found ({error})"
    return "" if count else "no GPU is found"


def _has_driver() -> bool:
    """Tell whether the CUDA driver's library can be loaded; it is not initialised."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class Module:
    """A cubin, loaded into the current GPU."""

    def __init__(self, cubin: bytes) -> None:
        from cuda.bindings import driver

        self._module = _checked(driver.cuModuleLoadData(cubin))

    def kernel(self, name: str) -> Kernel:
        """Return one of its kernels.

        Raises:
            DeviceError: If it has none of that name.
        """
        from cuda.bindings import driver

        return Kernel(_checked(driver.cuModuleGetFunction(self._module, name.encode())))


class Kernel:
    """A kernel on the current GPU."""

    def __init__(self, function: Any) -> None:
        from cuda.bindings import driver

        self._driver, self._function = driver, function

    def static_shared_bytes(self) -> int:
        """Return the shared memory that a block takes by itself."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        return int(_checked(self._driver.cuFuncGetAttribute(what, self._function)))

    def allow_shared_bytes(self, num_bytes: int) -> None:
        """Let launches ask for up to so much more of it."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _checked(self._driver.cuFuncSetAttribute(self._function, what, num_bytes))

    def blocks_per_sm(self, num_threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks of so many threads a multiprocessor holds at once."""
        ask = self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(_checked(ask(self._function, num_threads, shared_bytes)))

    def largest_cluster(self, num_threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks a cluster can have, and let launches ask for it."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        _checked(self._driver.cuFuncSetAttribute(self._function, what, 1))
        config = _launch_config(16, num_threads, shared_bytes)
        return int(_checked(self._driver.cuOccupancyMaxPotentialClusterSize(self._function, config)))

    def launch_cluster(
        self, num_blocks: int, num_threads: int, parameters: Sequence[Any], *, shared_bytes: int = 0
    ) -> None:
        """Start the kernel on CuPy's current stream as one cluster of blocks, and do not wait."""
        import cupy

        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = num_blocks, 1, 1
        config = _launch_config(num_blocks, num_threads, shared_bytes)
        config.hStream = cupy.cuda.get_current_stream().ptr
        config.attrs, config.numAttrs = [attribute], 1
        _values, pointers = _packed(parameters)
        _checked(self._driver.cuLaunchKernelEx(config, self._function, pointers.ctypes.data, 0))

    def launch(
        self,
        num_blocks: int,
        num_threads: int,
        parameters: Sequence[Any],
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Start the kernel on CuPy's current stream, and do not wait.

        Args:
            num_blocks: Blocks.
            num_threads: Threads of each.
            parameters: NumPy scalars and structures by value, CuPy arrays by their address.
            shared_bytes: Dynamic shared memory of a block.
            cooperative: Whether all blocks must be resident at once; else an error.
        """
        import cupy

        _values, pointers = _packed(parameters)
        start = self._driver.cuLaunchCooperativeKernel if cooperative else self._driver.cuLaunchKernel
        grid, block = (num_blocks, 1, 1), (num_threads, 1, 1)
        stream = cupy.cuda.get_current_stream().ptr
        extra = () if cooperative else (0,)
        _checked(start(self._function, *grid, *block, shared_bytes, stream, pointers.ctypes.data, *extra))


def _launch_config(num_blocks: int, num_threads: int, shared_bytes: int) -> Any:
    from cuda.bindings import driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = num_blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = num_threads, 1, 1
    config.sharedMemBytes = shared_bytes
    return config


def _packed(parameters: Sequence[Any]) -> tuple[list[NDArray[Any]], NDArray[np.uint64]]:
    """Return parameters in memory, which a launch reads, and where each of them lies."""
    import cupy

    values = [
        np.array(p.data.ptr, np.uint64) if isinstance(p, cupy.ndarray) else np.asarray(p) for p in parameters
    ]
    return values, np.array([value.ctypes.data for value in values], dtype=np.uint64)


def _checked(outcome: tuple[Any, ...]) -> Any:
    """Return what a call of the driver gives, if it went well."""
    if int(outcome[0]) != 0:
        raise DeviceError(f"the CUDA driver says {outcome[0].name}")
    return outcome[1] if len(outcome) > 1 else None
