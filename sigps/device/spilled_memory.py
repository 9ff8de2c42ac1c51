"""Arrays that begin in a GPU's memory and go on in the host's: one range of addresses, so kernels know nothing of it.

What lies on the host is pinned, and crosses when a kernel reads it (zero-copy): at 51 GB/s over PCIe 5 where warps
read 128 bytes and more at a time, while a copy takes 55 (NVIDIA H200). To pin it takes 0.29 s a GiB.
"""

from __future__ import annotations

import sys
from typing import Any

from sigps.device.cuda import checked, count_beside_pool

__all__ = ["GRANULE", "Spilled"]

GRANULE = 1 << 21
"""Bytes that both parts are a multiple of."""


class Spilled:
    """Memory on the current GPU and on this host behind it.

    Args:
        num_bytes: How much, at least.
        on_device: How much of it is to be on the device; the rest is on the host. Rounded down to granules.

    Attributes:
        bytes: The memory as a CuPy array, [at least num_bytes] uint8. It keeps the memory; operations of CuPy on both
            parts at once are kernels, and `write` copies.
        on_device: Bytes on the device.
        on_host: Bytes on the host.

    Raises:
        MemoryError: If there is too little of either.
    """

    def __init__(self, num_bytes: int, on_device: int) -> None:
        import cupy

        size = _up(max(1, num_bytes))
        self.on_device = min(size, on_device // GRANULE * GRANULE)
        self.on_host = size - self.on_device
        mapping = _Mapping(size, self.on_device, int(cupy.cuda.runtime.getDevice()))
        memory = cupy.cuda.UnownedMemory(mapping.address, size, mapping)
        self.bytes = cupy.ndarray((size,), dtype=cupy.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))

    def write(self, at: int, values: Any) -> None:
        """Copy an array of the device to the bytes from `at` on, on the current stream. Does not wait."""
        import cupy

        runtime = cupy.cuda.runtime
        stream = cupy.cuda.get_current_stream().ptr
        cut = min(max(0, self.on_device - at), values.nbytes)
        for first, last, kind in (
            (0, cut, runtime.memcpyDeviceToDevice),
            (cut, values.nbytes, runtime.memcpyDeviceToHost),
        ):
            if last > first:
                target = self.bytes.data.ptr + at + first
                runtime.memcpyAsync(target, values.data.ptr + first, last - first, kind, stream)


class _Mapping:
    """A range of addresses and the allocations behind it; freed with this."""

    def __init__(self, size: int, on_device: int, device: int) -> None:
        from cuda.bindings import driver

        kinds, what = driver.CUmemLocationType, driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
        gpu = _location(driver, kinds.CU_MEM_LOCATION_TYPE_DEVICE, device)
        node = max(0, checked(driver.cuDeviceGetAttribute(what, device)))
        host = _location(driver, kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, node)
        self._driver, self._size = driver, size
        self._mapped: list[tuple[int, int]] = []
        self.address = int(checked(driver.cuMemAddressReserve(size, 0, 0, 0)))
        self._on_device = 0
        self._map(0, on_device, gpu, [gpu])
        self._on_device = on_device
        count_beside_pool(on_device)
        self._map(on_device, size, host, [gpu, host])

    def _map(self, begin: int, end: int, place: Any, users: list[Any]) -> None:
        if begin == end:
            return
        driver, address, size = self._driver, self.address + begin, end - begin
        wanted = driver.CUmemAllocationProp()
        wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location = place
        error, handle = driver.cuMemCreate(size, wanted, 0)
        if int(error):
            where = "the GPU" if len(users) == 1 else "the host, pinned,"
            raise MemoryError(f"{where} has no {size:,} bytes ({error.name})")
        try:
            checked(driver.cuMemMap(address, size, 0, handle, 0))
        finally:
            checked(driver.cuMemRelease(handle))  # what is mapped stays
        self._mapped.append((address, size))
        access = []
        for user in users:
            one = driver.CUmemAccessDesc()
            one.location = user
            one.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            access.append(one)
        checked(driver.cuMemSetAccess(address, size, access, len(access)))

    def __del__(self) -> None:
        if sys.is_finalizing():  # the process ends, and its memory with it
            return
        for address, size in self.__dict__.get("_mapped", ()):
            self._driver.cuMemUnmap(address, size)
        count_beside_pool(-self.__dict__.get("_on_device", 0))
        if "address" in self.__dict__:
            self._driver.cuMemAddressFree(self.address, self._size)


def _location(driver: Any, kind: Any, number: int) -> Any:
    place = driver.CUmemLocation()
    place.type, place.id = kind, number
    return place


def _up(size: int) -> int:
    return -(-size // GRANULE) * GRANULE
