"""An NVIDIA GPU as a device: its properties (CuPy), and modules and kernels from cubins (the CUDA driver)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import mmap
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.errors import DeviceError

__all__ = [
    "Gpu",
    "Kernel",
    "Module",
    "check_fits",
    "checked",
    "count_beside_pool",
    "counting_from",
    "find_gpu",
    "first_gpu",
    "free_bytes",
    "has_sticky_error",
    "limit_memory",
    "map_host_page",
    "num_gpus",
    "on_gpu",
    "reachable",
    "uuid_of",
    "wait_for_device",
    "waiter_for_device",
    "what_is_missing",
    "word_reader",
]


@dataclass(frozen=True)
class Gpu:
    """Properties of a GPU.

    Attributes:
        ordinal: Its number among the GPUs that are visible to this process.
        arch: Its architecture, as in `sm_90`.
        num_sms: Streaming multiprocessors.
        shared_bytes: The most shared memory of a block.
        gigabytes_per_second: Peak bandwidth of its memory, 10**9 bytes.
        bus_id: Its PCI address on this host, the same in every process.
    """

    ordinal: int
    name: str
    arch: str
    num_sms: int
    shared_bytes: int
    gigabytes_per_second: float = 1000.0
    bus_id: str = ""


_first: ContextVar[int] = ContextVar("the first GPU", default=0)


@contextlib.contextmanager
def counting_from(ordinal: int) -> Iterator[None]:
    """Make a GPU the current one of this thread in the block, and the one that `find_gpu` counts from."""
    import cupy

    token = _first.set(ordinal)
    try:
        with cupy.cuda.Device(ordinal % num_gpus()):
            yield
    finally:
        _first.reset(token)


def first_gpu() -> int:
    """Return the ordinal from which `find_gpu` counts here, whether or not there is a GPU."""
    return _first.get()


def num_gpus() -> int:
    """Return how many GPUs are visible to this process."""
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def find_gpu(ordinal: int = 0) -> Gpu:
    """Return a GPU and make it the current one of this thread.

    Args:
        ordinal: Its number, from where `counting_from` says, taken modulo the number of GPUs.

    Raises:
        DeviceError: If there is no GPU, or a package is missing; names it.
    """
    missing = what_is_missing()
    if missing:
        raise DeviceError(f"device='cuda' cannot be used: {missing}. device='cpu' runs everywhere", rank=0)
    import cupy

    ordinal = (ordinal + _first.get()) % num_gpus()
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


def uuid_of(ordinal: int) -> str:
    """Return the name of a GPU that `CUDA_VISIBLE_DEVICES` takes in every process, as in `GPU-...`."""
    import uuid

    import cupy

    return f"GPU-{uuid.UUID(bytes=bytes(cupy.cuda.runtime.getDeviceProperties(ordinal)['uuid'][:16]))}"


@functools.cache
def reachable(gpu: Gpu) -> tuple[str, ...]:
    """Return the bus ids of the other GPUs of this host whose memory a GPU can write to."""
    import cupy

    runtime = cupy.cuda.runtime
    others = [i for i in range(runtime.getDeviceCount()) if i != gpu.ordinal]
    return tuple(_bus_id(other) for other in others if runtime.deviceCanAccessPeer(gpu.ordinal, other))


def fits(num_bytes: int) -> bool:
    """Tell whether the GPU has so much memory free.

    What CuPy keeps stays there where the GPU does without that. Where a limit leaves less than these bytes and what it
    keeps, that goes back first: else an array could be cut from a larger block, whose rest counts as taken.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    kept = pool.free_bytes()
    if _limit is None:
        at_once = kept
    else:  # beside all that CuPy has, in use or not
        at_once = min(cupy.cuda.runtime.memGetInfo()[0], _limit - pool.total_bytes() - _beside_pool) - kept
    return num_bytes <= at_once or num_bytes <= free_bytes()


def check_fits(needed: Mapping[str, int]) -> None:
    """Refuse what the GPU has no memory for, before any of it is taken.

    Args:
        needed: Bytes by what they are for.

    Raises:
        DeviceError: If they are more than what is free; it names them, and the ways out.
    """
    total = sum(needed.values())
    if not fits(total) and (free := free_bytes(total)) < total:
        parts = ", ".join(f"{size:,} for {what}" for what, size in needed.items())
        raise DeviceError(
            f"the GPU has {free:,} bytes free and this run needs {total:,} ({parts}). "
            "precision='single' and fewer edge columns take less; device='cpu' uses the host's memory",
            rank=0,
        )


def map_host_page(address: int) -> int:
    """Let the current GPU read a page of this process, from now on; return where the GPU has it."""
    from cuda.bindings import driver

    flags = driver.CU_MEMHOSTREGISTER_PORTABLE | driver.CU_MEMHOSTREGISTER_DEVICEMAP
    code = driver.cuMemHostRegister(address, mmap.PAGESIZE, flags)[0]
    if code != driver.CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
        checked((code,))
    return int(checked(driver.cuMemHostGetDevicePointer(address, 0)))


@functools.cache
def _page_on_gpu(gpu: Gpu, address: int) -> int:
    return map_host_page(address)


def on_gpu(gpu: Gpu, address: int) -> int:
    """Return where the current GPU reads a word of this process; its page stays mapped, and must stay there."""
    begin = address & ~(mmap.PAGESIZE - 1)
    return _page_on_gpu(gpu, begin) + address - begin


def word_reader(gpu: Gpu, address: int) -> Callable[[], int]:
    """Return a function that reads a signed word of 8 bytes from a GPU's memory, while kernels run; for any thread."""
    import cupy

    # Made here, since making them may wait for kernels.
    stream, found = cupy.cuda.Stream(non_blocking=True), cupy.cuda.alloc_pinned_memory(8)

    def read() -> int:
        with cupy.cuda.Device(gpu.ordinal):
            kind = cupy.cuda.runtime.memcpyDeviceToHost
            cupy.cuda.runtime.memcpyAsync(found.ptr, address, 8, kind, stream.ptr)
            stream.synchronize()
        return int(np.frombuffer(found, np.int64, 1)[0])

    return read


def wait_for_device(ordinal: int) -> None:
    """Return when a GPU of this process has nothing left to do."""
    waiter_for_device(ordinal)()


def waiter_for_device(ordinal: int) -> Callable[[], None]:
    """Return what waits so; finalizers call it, which may import nothing and raise nothing."""
    import cupy

    def wait() -> None:
        with contextlib.suppress(Exception), cupy.cuda.Device(ordinal):
            cupy.cuda.runtime.deviceSynchronize()

    return wait


def has_sticky_error() -> bool:
    """Tell whether every call fails from now on, in this process, as after an illegal access; waits for nothing."""
    import cupy

    runtime = cupy.cuda.runtime
    try:
        return int(runtime.streamQuery(cupy.cuda.Stream.null.ptr)) not in (0, _NOT_READY)
    except runtime.CUDARuntimeError as error:
        return int(error.status) != _NOT_READY


_NOT_READY = 600
"""cudaErrorNotReady: work is under way."""


def free_bytes(wanted: int = 0) -> int:
    """Return what this process may still take of the current GPU, CuPy's reserve among it.

    Under a limit no part of a block counts of which another part is in use: the pool counts it as taken, and what is
    larger does not fit there.

    Args:
        wanted: Bytes. Where fewer are free, Python's garbage is collected first: circles of references hold arrays.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    if wanted > 0 and free_bytes() < wanted:
        gc.collect()
        pool.free_all_blocks()
    free = int(cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes())
    if _limit is None:
        return free
    pool.free_all_blocks()
    return max(0, min(free, _limit - int(pool.total_bytes()) - _beside_pool))


_limit: int | None = None
_beside_pool = 0


def limit_memory(num_bytes: int | None) -> None:
    """Let this process take no more of a GPU than so many bytes, until the next call; None: all there are.

    CuPy's pool obeys it, and so does `free_bytes`.
    """
    import cupy

    global _limit
    if num_bytes is None and _limit is None:
        return
    _limit, pool = num_bytes, cupy.get_default_memory_pool()
    if num_bytes is not None:
        pool.free_all_blocks()
    pool.set_limit(size=0 if num_bytes is None else max(1, num_bytes - _beside_pool))


def count_beside_pool(num_bytes: int) -> None:
    """Count bytes that were taken of a GPU, or given back if below 0, beside CuPy's pool."""
    global _beside_pool
    _beside_pool += num_bytes
    if _limit is not None:
        limit_memory(_limit)


def _gigabytes_per_second(ordinal: int) -> float:
    from cuda.bindings import driver

    names = driver.CUdevice_attribute
    kilohertz, bits = (
        checked(driver.cuDeviceGetAttribute(name, ordinal))
        for name in (
            names.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
            names.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        )
    )
    return float(2 * kilohertz * bits / 8e6) or Gpu.gigabytes_per_second


@functools.cache
def what_is_missing() -> str:
    """Return why `device="cuda"` cannot be used here; an empty string if it can.

    Takes under a millisecond where a package or the NVIDIA driver is missing, and a second where CuPy is imported.
    """
    import importlib.util

    packages = {"cupy": "cupy-cuda13x", "cuda": "cuda-core"}
    absent = [wheel for module, wheel in packages.items() if importlib.util.find_spec(module) is None]
    if absent:
        return f"{', '.join(absent)} not installed (pip install 'sigps[cu13]', or [cu12])"
    if not _has_driver():
        return "no GPU is found (there is no NVIDIA driver: libcuda.so.1 cannot be loaded)"
    with spent_on("import"):
        import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU is found ({error})"
    return "" if count else "no GPU is found"


def _has_driver() -> bool:
    """Return whether the CUDA driver's library can be loaded; it is not initialised."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class Module:
    """A cubin that is loaded into the current GPU."""

    def __init__(self, cubin: bytes) -> None:
        from cuda.bindings import driver

        self._module = checked(driver.cuModuleLoadData(cubin))

    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its name.

        Raises:
            DeviceError: If the module has no kernel of that name.
        """
        from cuda.bindings import driver

        return Kernel(checked(driver.cuModuleGetFunction(self._module, name.encode())))

    def set_address(self, name: str, address: int) -> None:
        """Set a variable of the module that is a pointer."""
        from cuda.bindings import driver

        place = checked(driver.cuModuleGetGlobal(self._module, name.encode()))
        value = np.array([address], np.uint64)
        checked(driver.cuMemcpyHtoD(place, value.ctypes.data, 8))


class Kernel:
    """A kernel on the current GPU."""

    def __init__(self, function: Any) -> None:
        from cuda.bindings import driver

        self._driver, self._function, self._address = driver, function, int(function)

    def static_shared_bytes(self) -> int:
        """Return the static shared memory of a block, in bytes."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        return int(checked(self._driver.cuFuncGetAttribute(what, self._function)))

    def allow_shared_bytes(self, num_bytes: int) -> None:
        """Allow launches with up to `num_bytes` of dynamic shared memory a block."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(self._driver.cuFuncSetAttribute(self._function, what, num_bytes))

    def blocks_per_sm(self, num_threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks of `num_threads` threads are resident on a multiprocessor at once."""
        count = self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(checked(count(self._function, num_threads, shared_bytes)))

    def largest_cluster(self, num_threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks a cluster can have, and allow launches with clusters of that size."""
        what = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        checked(self._driver.cuFuncSetAttribute(self._function, what, 1))
        config = _launch_config(16, num_threads, shared_bytes)
        return int(checked(self._driver.cuOccupancyMaxPotentialClusterSize(self._function, config)))

    def launch_cluster(
        self, num_blocks: int, num_threads: int, parameters: Sequence[Any], *, shared_bytes: int = 0
    ) -> None:
        """Launch the kernel on CuPy's current stream as one cluster of blocks; does not wait."""
        import cupy

        attribute = self._driver.CUlaunchAttribute()
        attribute.id = self._driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = num_blocks, 1, 1
        config = _launch_config(num_blocks, num_threads, shared_bytes)
        config.hStream = cupy.cuda.get_current_stream().ptr
        config.attrs, config.numAttrs = [attribute], 1
        values = _pointers(parameters)
        checked(self._driver.cuLaunchKernelEx(config, self._function, ctypes.addressof(values), 0))

    def launch(
        self,
        num_blocks: int,
        num_threads: int,
        parameters: Sequence[Any],
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Launch the kernel on CuPy's current stream; does not wait.

        Args:
            num_blocks: Blocks of the grid.
            num_threads: Threads of a block.
            parameters: NumPy scalars and structures by value, CuPy arrays by their address.
            shared_bytes: Dynamic shared memory of a block.
            cooperative: Whether all blocks must be resident at once; if they cannot be, that is an error.
        """
        import cupy

        driver, values = cupy.cuda.driver, _pointers(parameters)
        given = (self._address, num_blocks, 1, 1, num_threads, 1, 1, shared_bytes)
        stream = cupy.cuda.get_current_stream().ptr
        try:
            if cooperative:
                driver.launchCooperativeKernel(*given, stream, ctypes.addressof(values))
            else:
                driver.launchKernel(*given, stream, ctypes.addressof(values), 0)
        except driver.CUDADriverError as error:
            raise DeviceError(f"the CUDA driver reports {error}") from None


def _launch_config(num_blocks: int, num_threads: int, shared_bytes: int) -> Any:
    from cuda.bindings import driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = num_blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = num_threads, 1, 1
    config.sharedMemBytes = shared_bytes
    return config


def _pointers(parameters: Sequence[Any]) -> Any:
    """Return pointers to copies of the parameters, which live as long as what is returned, as a launch takes them.

    Four take 2 us; NumPy takes one to say where an array lies.
    """
    import cupy

    copies = [
        p.data.ptr.to_bytes(8, sys.byteorder) if isinstance(p, cupy.ndarray) else np.asarray(p).tobytes()
        for p in parameters
    ]
    return (ctypes.c_char_p * len(copies))(*copies)


def checked(outcome: tuple[Any, ...]) -> Any:
    """Return the result of a driver call; raise DeviceError if it failed."""
    if int(outcome[0]) != 0:
        raise DeviceError(f"the CUDA driver reports {outcome[0].name}")
    return outcome[1] if len(outcome) > 1 else None
