"""Buckets of a run in priority order in the memory of a GPU, found and released, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sigps.engine.gpu.priority import GpuBuckets
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, RETIRED

pytestmark = pytest.mark.gpu

TYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
GHOST_WORDS = 3


def on_device(values: Any) -> Any:
    import cupy

    return cupy.asarray(values)


def words_of(bits: NDArray[np.bool_], more: int) -> NDArray[np.uint32]:
    """Return bits as words, and as many words behind them, all ones."""
    packed = np.packbits(bits, bitorder="little")
    words = np.zeros(-(-bits.size // 32) * 4, dtype=np.uint8)
    words[: packed.size] = packed
    return np.append(words.view(np.uint32), np.full(more, ~np.uint32(0), dtype=np.uint32))


def bits_of(words: NDArray[np.uint32], count: int) -> NDArray[np.bool_]:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].view(np.bool_)


def found_gpu() -> Any:
    from sigps.device.cuda import find_gpu

    return find_gpu()


@pytest.mark.parametrize("takes_min", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 31, 32, 129, 5000, 300_001])
def test_turns(count: int, dtype: type[np.integer[Any]], takes_min: bool) -> None:
    """The best goes, some retire, the next best goes, then all: each round as NumPy does it."""
    rng = np.random.default_rng(count)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, size=count, dtype=dtype, endpoint=True)
    values[rng.integers(count, size=3)] = limits.min
    values[rng.integers(count, size=3)] = limits.max
    degrees = rng.integers(0, 5, size=count, dtype=np.uint32)
    degrees[0] = 1
    waits = (rng.random(count) < 0.7) & (degrees > 0)
    waits[0] = True
    status = rng.choice([ACTIVE, HALTED, RETIRED], size=count, p=[0.4, 0.4, 0.2]).astype(np.uint8)
    status[0] = HALTED
    sent = on_device(words_of(waits, GHOST_WORDS))
    status_there, values_there = on_device(status), on_device(values)
    buckets = GpuBuckets(
        found_gpu(), sent, status_there, values_there, on_device(degrees), takes_min=takes_min
    )
    for takes_all in (False, False, True):
        waits &= status != RETIRED
        edges, best = buckets.find()
        assert edges == degrees[waits].sum()
        worst = limits.max if takes_min else limits.min
        expected = (values[waits].min if takes_min else values[waits].max)(initial=worst)
        assert best == expected
        goes = waits if takes_all else waits & (values == expected)
        records = on_device(np.zeros(count, dtype=dtype))
        sent[:] = ~sent[:]  # whatever was there
        assert buckets.release(None if takes_all else best, records, sent) == (
            goes.sum(),
            degrees[goes].sum(),
        )
        words = sent.get()
        assert bits_of(words, count).tolist() == goes.tolist()
        assert not words[-GHOST_WORDS:].any()
        assert not bits_of(words, words.size * 32)[count:].any()
        assert records.get()[goes].tolist() == values[goes].tolist()
        waits &= ~goes
        status[rng.random(count) < 0.3] = RETIRED
        status_there.set(status)


def test_nobody() -> None:
    nothing: list[Any] = [on_device(np.zeros(0, dtype=t)) for t in (np.uint32, np.uint8, np.int32, np.uint32)]
    buckets = GpuBuckets(found_gpu(), *nothing, takes_min=True)
    assert buckets.find() == (0, np.iinfo(np.int32).max)
    ghosts = on_device(np.full(2, 7, dtype=np.uint32))
    assert buckets.release(None, on_device(np.zeros(0, dtype=np.int32)), ghosts) == (0, 0)
    assert not ghosts.get().any()
