"""Fills and copies of a device's arrays, on the stand-in that is this process's memory."""

from __future__ import annotations

import threading
from typing import Any

import host_gpu
import numpy as np
import pytest

from sigps.device import transfers
from sigps.device.answer_memory import AnswerMemory
from sigps.device.transfers import bring, copy_within, fill_with
from sigps.engine.gpu import device_fields
from sigps.engine.gpu.columns import write_cast
from sigps.engine.gpu.device_fields import DeviceFields


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    transfers._lanes.cache_clear()


def on_device(values: Any) -> Any:
    import cupy

    return cupy.asarray(np.array(values))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 1000])
@pytest.mark.parametrize(
    "row", [b"\0", b"\7\7", b"\1\2\3\4", b"\1\2\3\4" * 2, b"\1\2\3\4\5\6\7\x08", b"abc", bytes(range(64))]
)
def test_an_array_is_filled_with_rows(row: bytes, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "_FIRST_BYTES", 16)
    array = on_device(np.full(count * len(row) + 1, 99, np.uint8))
    fill_with(array[:-1], row)
    assert np.asarray(array[:-1]).tobytes() == row * count
    assert int(array[-1]) == 99


def test_vectors_are_filled_number_by_number() -> None:
    array = on_device(np.zeros((5, 3)))
    fill_with(array, np.array([1.5, -2.0, 0.0]).tobytes())
    assert np.asarray(array).tolist() == [[1.5, -2.0, 0.0]] * 5


def test_an_array_is_copied_over_another() -> None:
    target, source = on_device(np.zeros(4, np.uint32)), on_device(np.arange(4, dtype=np.uint32))
    copy_within(target[1:3], source[:2])
    assert np.asarray(target).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("shape", [(0,), (3,), (1000,), (1003,), (301, 5)])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float32, np.float64])
def test_large_arrays_cross_in_pieces(
    shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "_SMALL_BYTES", 64)
    monkeypatch.setattr(transfers, "STAGED_BYTES", 128)
    values = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    found = bring(on_device(values), np.dtype(dtype))
    assert type(found) is np.ndarray
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_numbers_are_converted_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "_SMALL_BYTES", 16)
    monkeypatch.setattr(transfers, "STAGED_BYTES", 64)
    values = np.arange(-50, 50, dtype=np.int32)
    values[[3, 40, 99]] = np.iinfo(np.int32).min  # no vertex
    expected = values.astype(np.int64)
    expected[[3, 40, 99]] = np.iinfo(np.int64).min
    found = bring(on_device(values), np.dtype(np.int64), write_cast)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(100,), (50, 2)])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("small", [16, 1 << 16])
def test_which_ids_are_none_is_found_while_they_cross(
    dtype: Any, shape: tuple[int, ...], ordered: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "_SMALL_BYTES", small)
    monkeypatch.setattr(transfers, "STAGED_BYTES", 64)
    values = np.arange(-50, 50, dtype=dtype)
    values[[3, 40, 99]] = np.iinfo(dtype).min
    values = values.reshape(shape)
    order: Any = np.arange(shape[0], dtype=np.uint32)[::-1] if ordered else slice(None)
    expected = values[order].astype(np.int64)
    expected[values[order] == np.iinfo(dtype).min] = np.iinfo(np.int64).min
    for _ in range(3):  # to new pages, then to pinned ones
        fields = DeviceFields(
            host_gpu.GPU,
            {
                "parent": (on_device(values), np.dtype(np.int64)),
                "level": (on_device(values), np.dtype(dtype)),
                "root": (on_device(values), np.dtype(np.int64)),
            },
            on_device(order) if ordered else order,
            {"parent"},
        )
        np.testing.assert_array_equal(fields.none_of("parent"), expected == np.iinfo(np.int64).min)
        for name in ("parent", "root"):
            assert fields[name].dtype == np.int64
            np.testing.assert_array_equal(fields[name], expected)
        np.testing.assert_array_equal(fields["level"], values[order])


def test_a_device_without_room_leaves_the_order_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*of: Any, **more: Any) -> None:
        raise MemoryError("out of memory")

    monkeypatch.setattr(device_fields, "take_rows", refuse)
    monkeypatch.setattr(device_fields, "take_ids", refuse)
    least = np.iinfo(np.int32).min
    values, order = np.array([3, least, 5, 7], np.int32), np.array([2, 1, 0], np.uint32)
    rows = np.arange(8.0).reshape(4, 2)
    fields = DeviceFields(
        host_gpu.GPU,
        {"parent": (on_device(values), np.dtype(np.int64)), "place": (on_device(rows), np.dtype(np.float64))},
        on_device(order),
        {"parent"},
    )
    with pytest.raises(MemoryError):
        fields.on_device("place")
    assert fields["place"].tolist() == [[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]]
    assert fields["parent"].tolist() == [5, np.iinfo(np.int64).min, 3]
    assert fields.none_of("parent").tolist() == [False, True, False]


def test_copy_engines_write_to_the_pages_of_an_earlier_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "_SMALL_BYTES", 16)
    monkeypatch.setattr(transfers, "_answer_memory", AnswerMemory())
    values = np.arange(5000)
    bring(on_device(values), values.dtype)
    monkeypatch.setattr(transfers, "_in_pieces", lambda *given: pytest.fail("through staging"))
    for shift in range(3):
        found = bring(on_device(values + shift), values.dtype)
        np.testing.assert_array_equal(found, values + shift)
        del found


def test_pinned_memory_is_bounded_and_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    monkeypatch.setattr(transfers, "_SMALL_BYTES", 16)
    monkeypatch.setattr(transfers, "STAGED_BYTES", 64)
    monkeypatch.setattr(transfers, "available_cores", lambda: 3)
    monkeypatch.setattr(transfers, "_answer_memory", AnswerMemory())
    taken, pin, lock = [], cupy.cuda.alloc_pinned_memory, threading.Lock()

    def counted(size: int) -> Any:
        with lock:
            taken.append(size)
        return pin(size)

    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", counted)
    for count in range(5000, 5005):
        values = np.arange(count)
        np.testing.assert_array_equal(bring(on_device(values), values.dtype), values)
    assert 1 <= len(taken) <= 3
    assert set(taken) == {64}


def test_a_lane_that_cannot_be_made_leaves_room_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError("no pinned memory")

    made = object()
    monkeypatch.setattr(transfers, "available_cores", lambda: 1)
    lanes = transfers._Lanes()
    monkeypatch.setattr(transfers, "_Lane", fail)
    with pytest.raises(MemoryError, match="no pinned memory"):
        lanes.take()
    monkeypatch.setattr(transfers, "_Lane", lambda: made)
    found: list[Any] = []
    taker = threading.Thread(target=lambda: found.append(lanes.take()), daemon=True)
    taker.start()
    taker.join(10.0)
    assert found == [made]
