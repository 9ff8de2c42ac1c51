"""Memory for answers: which is kept, which is pinned, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import host_gpu
import numpy as np
import pytest

from sigps.device import answer_memory
from sigps.device.answer_memory import AnswerMemory
from sigps.device.host_block import HostBlock


@pytest.fixture(autouse=True)
def pinned(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """What the driver has pinned: bytes by address."""
    host_gpu.use_host_as_gpu(monkeypatch)
    import cupy

    found: dict[int, int] = {}

    def register(address: int, size: int, flags: int) -> None:
        assert address % 4096 == size % 4096 == 0
        assert not any(a < address + size and address < a + n for a, n in found.items())
        found[address] = size

    monkeypatch.setattr(cupy.cuda.runtime, "hostRegister", register)
    monkeypatch.setattr(cupy.cuda.runtime, "hostUnregister", found.__delitem__)
    return found


def test_memory_of_an_answer_serves_the_next_one_when_nobody_holds_it() -> None:
    memory = AnswerMemory()
    first = memory.page((300, 2), np.dtype(np.int64)).array
    first[:], at, view = 7, first.ctypes.data, first[5:]
    del first
    second = memory.page((600,), np.dtype(np.float64)).array
    second[:] = 1.0
    assert (view == 7).all()  # a view holds all of it
    del view
    assert memory.page((1200,), np.dtype(np.float32)).array.ctypes.data == at


def test_no_more_memory_of_answers_is_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_memory, "_MOST_KEPT_BYTES", 1000)
    memory = AnswerMemory()
    held = [memory.page((100,), np.dtype(np.int32)).array for _ in range(4)]
    del held
    assert memory._kept == 800
    memory.page((90,), np.dtype(np.int32))
    assert memory._kept == 760
    memory.page((251,), np.dtype(np.int32))
    assert memory._kept == 760


def test_memory_of_sizes_that_nobody_asks_for_any_more_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_memory, "_MOST_KEPT_BYTES", 10_000)
    memory = AnswerMemory()
    memory.page((8000,), np.dtype(np.uint8))
    memory.page((1500,), np.dtype(np.uint8))
    at = memory.page((9000,), np.dtype(np.uint8)).array.ctypes.data
    others = [np.empty(9000, np.uint8) for _ in range(4)]
    assert memory.page((9000,), np.dtype(np.uint8)).array.ctypes.data == at
    assert len(others) == 4  # so that the memory cannot have been got anew at the same place


def test_memory_that_comes_back_while_the_lock_is_held_is_kept_afterwards() -> None:
    memory = AnswerMemory()
    first = memory.page((5000,), np.dtype(np.uint8)).array
    at = first.ctypes.data
    with memory._lock:
        del first
    memory.page((10,), np.dtype(np.uint8))
    assert memory.page((5000,), np.dtype(np.uint8)).array.ctypes.data == at


def test_memory_is_pinned_where_it_serves_once_more(pinned: dict[int, int]) -> None:
    memory = AnswerMemory()
    first = memory.page((5000,), np.dtype(np.uint8))
    assert not first.is_pinned
    assert not pinned
    del first
    second = memory.page((5000,), np.dtype(np.uint8))
    assert second.is_pinned
    assert list(pinned.values()) == [8192]
    del second
    assert memory.page((5000,), np.dtype(np.uint8)).is_pinned  # and stays so
    assert len(pinned) == 1


def test_memory_that_is_not_kept_is_not_pinned_any_more(
    pinned: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = AnswerMemory()
    for _ in range(2):
        memory.page((5000,), np.dtype(np.uint8))
    assert len(pinned) == 1
    monkeypatch.setattr(answer_memory, "_MOST_KEPT_BYTES", 6000)
    memory.page((3000,), np.dtype(np.uint8))
    assert not pinned
    assert memory._pinned == 0


def test_no_more_memory_is_pinned_than_is_said(
    pinned: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_memory, "_MOST_PINNED_BYTES", 3 * 4096)
    memory = AnswerMemory()
    pages: list[Any] = [memory.page((4096,), np.dtype(np.uint8)) for _ in range(4)]
    del pages
    pages = [memory.page((4096,), np.dtype(np.uint8)) for _ in range(4)]
    assert [p.is_pinned for p in pages].count(True) == len(pinned) == 3


def test_memory_that_the_driver_does_not_pin_serves_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def refuse(*given: Any) -> None:
        raise cupy.cuda.runtime.CUDARuntimeError("not supported")

    refuses: Callable[..., None] = refuse
    monkeypatch.setattr(cupy.cuda.runtime, "hostRegister", refuses)
    memory = AnswerMemory()
    for _ in range(3):
        page = memory.page((5000,), np.dtype(np.uint8))
        assert not page.is_pinned
        page.array[:] = 1
        del page
    assert memory._pinned == 0


def test_an_ending_process_gives_nothing_back() -> None:
    """When Python ends CuPy can no longer be called, and whoever prints then is only in the way."""
    memory = AnswerMemory()
    block = HostBlock(100)
    owner = answer_memory._Owner(block, memory)
    owner.__del__(lambda: True)
    assert memory._taken(100) is None
    owner.__del__(lambda: False)
    assert memory._taken(100) is block
