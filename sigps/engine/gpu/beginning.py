"""What the memory of a run begins with: zeros, defaults and small values, all written by a launch of one kernel.

What to write is the same for every run of a program on a graph, but for where the run's two blocks begin and for the
values of its parameters: so it is put together once, and these are filled in (`begin_run` of `kernels/cuda/layout.cu`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.cuda import Gpu
from sigps.device.transfers import fill_with
from sigps.engine.gpu import placed_edges
from sigps.engine.gpu.columns import array_at, cast
from sigps.engine.gpu.memory_plan import MemoryPlan
from sigps.kernels.cuda.abi import structure
from sigps.native.marshal import Packed

__all__ = ["Beginning", "beginning_of", "cells_of"]

_BEGINNING = structure("Beginning").dtype
_MOST_FILLS, _MOST_WORDS = _BEGINNING["fills"].shape[0], _BEGINNING["words"].shape[0]
assert _BEGINNING.fields is not None
_FILLS_AT, _WORDS_AT = (int(_BEGINNING.fields[name][1]) // 8 for name in ("fills", "words"))
_WORDS_OF_FILL = _BEGINNING["fills"].base.itemsize // 8

_THREADS = 256
_WORDS_OF_THREAD = 8


class _Fill(NamedTuple):
    """Memory that repeats a pattern.

    Attributes:
        block: Of which block it is a part: 0, the run's; 1, the states'; 2, the host's.
        at: Where it begins there, in bytes; a multiple of 8.
        num_bytes: Its size; what is behind it, up to a multiple of 8, may be written, too.
        row: The bytes that it repeats.
        params_at: Of which parameters it is the place, which is its first; None where it is of none.
    """

    block: int
    at: int
    num_bytes: int
    row: bytes
    params_at: int | None = None

    @property
    def num_words(self) -> int:
        return -(-self.num_bytes // 8)

    @property
    def pattern(self) -> NDArray[np.uint64]:
        """The words that repeat where the row does."""
        words = np.frombuffer(self.row * (8 // math.gcd(8, len(self.row))), np.uint64)
        return words[:1] if self.params_at is None and (words == words[0]).all() else words


class _Launch(NamedTuple):
    """One launch.

    Attributes:
        words: A `Beginning` as words of 8 bytes, for blocks that begin at address 0.
        targets: Of each block, which of the words are addresses in it.
        params: Which of the words are parameters, and which of these.
        num_written: The words that it writes.
    """

    words: NDArray[np.uint64]
    targets: tuple[NDArray[np.intp], ...]
    params: tuple[slice, slice]
    num_written: int


@dataclass(frozen=True, eq=False)
class Beginning:
    """What runs of a program on a graph begin with.

    Attributes:
        launches: One, and more where there are very many small values.
        copied: Memory whose pattern is too long for a launch.
    """

    launches: tuple[_Launch, ...]
    copied: tuple[_Fill, ...]

    def write(self, gpu: Gpu, blocks: Sequence[Any], params: bytes) -> None:
        """Write it on the current stream. Does not wait for the device.

        Args:
            gpu: The GPU.
            blocks: Where the run's block and that of states begin, and the host's if there is one: CuPy's pointers.
            params: The cells of the parameters.
        """
        cells = np.frombuffer(params, np.uint64)
        kernel = placed_edges.layout_kernel("begin_run_thread_mapped", gpu)
        for words, targets, (place, which), num_written in self.launches:
            filled = words.copy()
            for in_block, block in zip(targets, blocks, strict=False):
                filled[in_block] += np.uint64(block.ptr)
            filled[place] = cells[which]
            num_blocks = min(gpu.num_sms * 8, -(-num_written // (_THREADS * _WORDS_OF_THREAD)))
            kernel.launch(num_blocks, _THREADS, (filled,))
        for number, at, num_bytes, row, _ in self.copied:
            size = num_bytes // len(row) * len(row)
            fill_with(array_at(blocks[number] + at, size, np.dtype(np.uint8)), row)


def beginning_of(compiled: CudaProgram, plan: MemoryPlan) -> Beginning:
    """Return what runs of a program begin with whose memory is laid out by a plan."""
    found, launches = [*_fills(compiled, plan)], list[_Launch]()
    fills = [fill for fill in found if fill.pattern.size <= _MOST_WORDS]
    copied = [fill for fill in found if fill.pattern.size > _MOST_WORDS]
    while fills:
        sizes = np.cumsum([fill.pattern.size for fill in fills[:_MOST_FILLS]])
        taken = int(np.count_nonzero(sizes <= _MOST_WORDS))
        launches.append(_launch(fills[:taken]))
        del fills[:taken]
    return Beginning(tuple(launches), tuple(copied))


def _fills(compiled: CudaProgram, plan: MemoryPlan) -> Iterator[_Fill]:
    program, offsets, sizes = compiled.program, plan.offsets, plan.sizes
    # Arrays that begin as zeros stand first, then the control structure: its zeros are superstep 0.
    yield _Fill(0, 0, offsets["control"] + sizes["control"], bytes(8))
    aggregators = [(a, a.field.dtype()) for a in program.aggregators]
    small = {
        "aggregates": cells_of([Packed.of(a.start, dtype) for a, dtype in aggregators]),
        "carried": cells_of([Packed.of(a.identity, dtype) for a, dtype in aggregators]),
        "params": bytes(sizes["params"]),
    }
    for name, cells in small.items():
        for first in range(0, len(cells), 8 * _MOST_WORDS):
            words = cells[first : first + 8 * _MOST_WORDS]
            yield _Fill(0, offsets[name] + first, len(words), words, first // 8 if name == "params" else None)
    for name in ("inboxes0", "inboxes1"):
        if name in offsets and compiled.neutral:
            yield _Fill(0, offsets[name], sizes[name], compiled.neutral)
    for i, (field, dtype) in enumerate(zip(program.edge_states, program.edge_state_dtypes, strict=True)):
        for name in (f"pending{i}", f"committed{i}"):
            block, at = (2, plan.on_host[name]) if name in plan.on_host else (0, offsets[name])
            yield _Fill(block, at, sizes[name], np.array(field.default, dtype.base).tobytes())
    places = itertools.pairwise((*plan.states, plan.state_bytes))
    fields = zip(program.states, program.state_dtypes, compiled.states, places, strict=True)
    for field, dtype, kept, (begin, end) in fields:
        yield _Fill(1, begin, end - begin, cast(np.array(field.default, dtype.base), kept).tobytes())


def _launch(fills: Sequence[_Fill]) -> _Launch:
    beginning = np.zeros((), dtype=_BEGINNING)
    beginning["num_fills"] = len(fills)
    first, params = 0, (slice(0), slice(0))
    for place, fill in zip(beginning["fills"], fills, strict=False):
        pattern = fill.pattern
        size = pattern.size
        place["target"], place["count"], place["first"], place["period"] = (
            fill.at,
            fill.num_words,
            first,
            size,
        )
        beginning["words"][first : first + size] = pattern
        if fill.params_at is not None:  # of which a launch has one piece: whole pieces fill it
            here = _WORDS_AT + first
            params = slice(here, here + size), slice(fill.params_at, fill.params_at + size)
        first += size
    targets = _FILLS_AT + _WORDS_OF_FILL * np.arange(len(fills))
    blocks = np.array([fill.block for fill in fills])
    words = beginning.reshape(1).view(np.uint64)
    of_blocks = tuple(targets[blocks == block] for block in range(3))
    return _Launch(words, of_blocks, params, sum(fill.num_words for fill in fills))


def cells_of(values: Sequence[Any]) -> bytes:
    """Return 8-byte cells, a number in the low bytes of each; at least one."""
    numbers = [number for value in values for number in (value if value.ndim else (value,))]
    return b"".join(number.tobytes().ljust(8, b"\0") for number in numbers) or bytes(8)
