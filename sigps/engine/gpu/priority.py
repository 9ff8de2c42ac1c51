"""Buckets of a run in priority order, in the memory of a GPU; `engine/cpu/priority.py` has them on CPU cores."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.device.transfers import copy_within
from sigps.engine.direction import choose_release
from sigps.engine.gpu.run_memory import RunMemory
from sigps.kernels.cpu.arguments import RETIRED

__all__ = ["GpuBuckets", "GpuPriorityOrder", "bucket_macros", "link_buckets_ahead"]

_THREADS = 256
_WORDS = 4  # of `kernels/cuda/buckets.cu`


class GpuBuckets:
    """The vertices of one partition that sent in superstep 0 and are not released yet. Arrays are CuPy's.

    Args:
        gpu: The GPU; the current one.
        sent: Bits of the senders of superstep 0, uint32, and of ghosts behind them.
        status: [num_owned], uint8.
        values: [num_owned], integers: what each sends when it is released.
        degrees: [num_owned], uint32: out-edges; vertices without any are in no bucket.
        takes_min: Whether the best value is the least, and not the greatest.
    """

    def __init__(
        self, gpu: Gpu, sent: Any, status: Any, values: Any, degrees: Any, *, takes_min: bool
    ) -> None:
        import cupy

        self._status, self._values, self._degrees = status, values, degrees
        num_words = -(-values.size // 32)
        self._bits = cupy.zeros(-(-num_words // _WORDS) * _WORDS, dtype=cupy.uint32)
        copy_within(self._bits[:num_words], sent[:num_words])
        limits = np.iinfo(values.dtype.name)
        self._worst = limits.max if takes_min else limits.min
        self._best_type = np.dtype(np.int64 if limits.min < 0 else np.uint64)
        self._find, self._release = _kernels(gpu, values.dtype.name, takes_min)
        self._num_blocks = max(1, min(gpu.num_sms * 8, -(-num_words // (_WORDS * _THREADS // 32))))
        self._found = cupy.zeros(4, dtype=cupy.uint64)

    def find(self) -> tuple[int, int]:
        """Return the out-edges of the vertices in buckets that have not retired, and the best of their values.

        The best value of no vertices is the worst of the type. Waits for the device.
        """
        begin = np.zeros(4, dtype=np.uint64)
        begin[1:2].view(self._best_type)[:] = self._worst
        self._found.set(begin)
        n = np.uint32(self._values.size)
        given = self._bits, self._status, self._values, self._degrees, n, self._found
        self._find.launch(self._num_blocks, _THREADS, given)
        found = self._found.get()
        return int(found[0]), int(found[1:2].view(self._best_type)[0])

    def release(self, best: int | None, records: Any, sent: Any) -> tuple[int, int]:
        """Release the bucket of the best value, or all buckets; after `find`. Waits for the device.

        Args:
            best: The value; None: all buckets.
            records: [num_owned] at least, of the type of `values`: where released vertices' values are written.
            sent: Bits of the senders, uint32, which are written; those of ghosts become 0.

        Returns:
            The released vertices, and their out-edges.
        """
        n, takes_all = np.uint32(self._values.size), np.uint32(best is None)
        value = self._best_type.type(best or 0)
        given = self._bits, self._values, self._degrees, n, takes_all, value, records, sent
        self._release.launch(self._num_blocks, _THREADS, (*given, np.uint32(sent.size), self._found))
        found = self._found.get()
        return int(found[2]), int(found[3])


class Released(NamedTuple):
    """What a release lets go.

    Attributes:
        spreads_alone: Whether it is the bucket of the best value; else all buckets.
        num_senders: The vertices.
        edges: Their out-edges.
    """

    spreads_alone: bool
    num_senders: int
    edges: int


class GpuPriorityOrder:
    """Releases the buckets of a run on a GPU, as `engine/cpu/priority.py` does on CPU cores.

    Args:
        gpu: The GPU; the current one.
        program: A program that has a priority-order form, where anything is released.
    """

    def __init__(self, gpu: Gpu, program: VertexProgram) -> None:
        self._gpu, self._program = gpu, program
        self._buckets: GpuBuckets | None = None
        self._rounds = 0

    def release(
        self,
        memory: RunMemory,
        degrees: Any,
        superstep: int,
        num_edges: int,
        best_of_all: Callable[[int, int, bool], tuple[int, int]],
    ) -> Released | None:
        """Release the bucket of the best value, or all buckets; None where there is none.

        Args:
            memory: The run's; records and senders of `superstep` are written.
            degrees: [num_owned], uint32: out-edges.
            superstep: The next one.
            num_edges: In-edges on all GPUs.
            best_of_all: Returns what `GpuBuckets.find` would return of all partitions together.
        """
        parity, takes_min = superstep & 1, self._program.slots[0].op == "min"
        values, sent = memory.states[0], memory.array(f"sent{parity}", np.uint32)
        if self._buckets is None:
            status = memory.array("status", np.uint8)
            self._buckets = GpuBuckets(self._gpu, sent, status, values, degrees, takes_min=takes_min)
        waiting_edges, best = best_of_all(*self._buckets.find(), takes_min)
        if waiting_edges == 0:
            return None
        choice = choose_release(waiting_edges=waiting_edges, num_edges=num_edges, rounds=self._rounds)
        self._rounds += 1
        spreads_alone = choice == "best"
        records = memory.array(f"records{parity}", values.dtype)
        return Released(spreads_alone, *self._buckets.release(best if spreads_alone else None, records, sent))


@functools.cache
def _kernels(gpu: Gpu, value_type: str, takes_min: bool) -> tuple[Kernel, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("buckets", gpu.arch, bucket_macros(value_type, takes_min)))
    return module.kernel("find_best_warp_mapped"), module.kernel("release_warp_mapped")


@functools.cache
def link_buckets_ahead(gpu: Gpu, value: str, takes_min: bool) -> None:
    """Begin to link what finds and releases buckets, for a type of NumPy's; once a process."""
    from sigps.device.linking import link_ahead

    link_ahead("buckets", gpu.arch, bucket_macros(value, takes_min))


def bucket_macros(value_type: str, takes_min: bool) -> dict[str, str]:
    """Return what `kernels/cuda/buckets.cu` is compiled with for a type of NumPy's."""
    is_signed = value_type.startswith("int")
    return {
        "SIGPS_VALUE": f"{value_type}_t",
        "SIGPS_BEST": "long long" if is_signed else "unsigned long long",
        "SIGPS_TAKES_MIN": str(int(takes_min)),
        "SIGPS_RETIRED": str(RETIRED),
    }
