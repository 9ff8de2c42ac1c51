"""Compiled functions of numbers and arrays: what they take, what they return, and that they are what Python runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from sigps.compiler.cpu.rows import rows
from sigps.native import kernel as kernels
from sigps.native.kernel import Kernel
from sigps.native.primitives import exchange, load_row, lowest_bit, pick, prefetch, scratch, store_row

NUMBERS = [
    True, False, 7, -(2**63), 0.5, float("inf"), np.int8(-3), np.uint8(200), np.int16(-300), np.uint16(60000),
    np.int32(-(2**31)), np.uint32(2**32 - 1), np.int64(5), np.uint64(2**64 - 1), np.float32(0.1), np.float64(0.1),
    np.bool_(True),
]  # fmt: skip
DTYPES = "?bhilBHILfd"


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIGPS_CACHE_DIR", str(tmp_path))


class Pair(NamedTuple):
    values: Any
    shift: int


def test_numbers_come_back_as_they_are() -> None:
    def twice(x):
        return x, (x,), None

    same = Kernel(twice, "twice")
    for number in NUMBERS:
        one, (other,), nothing = same(number)
        assert one == number
        assert one == other
        assert nothing is None
        assert np.asarray(one).dtype == np.asarray(number).dtype


@pytest.mark.parametrize("code", DTYPES)
def test_arrays_are_read_and_written_where_they_lie(code: str) -> None:
    def reverse(values, others):
        for i in range(len(values)):
            others[i] = values[len(values) - 1 - i]
        return len(others), others.size

    values = np.arange(10).astype(code)
    run = Kernel(reverse, "reverse")
    for given in (values, values[::3], values[2:3], values[:0], values[::-1]):
        for others in (np.zeros(given.size, code), np.zeros(2 * given.size, code)[::2]):
            assert run(given, others) == (given.size, given.size)
            assert others.tolist() == given[::-1].tolist()


def test_rows_lie_side_by_side() -> None:
    def swap(arrays, i, j):
        one = load_row(arrays, i)
        store_row(arrays, i, load_row(arrays, j))
        store_row(arrays, j, one)
        return one

    for dtypes in ((), ("u1",), ("u1", "f8"), ("f4", "u1", "i8", "i2")):
        table = rows(tuple(map(np.dtype, dtypes)), 3)
        for array in table:
            array[0] = tuple(range(1, 1 + len(dtypes))) if len(dtypes) > 1 else 1
        assert Kernel(swap, "swap")(table, 0, 2) == tuple(range(1, 1 + len(dtypes)))
        for array in table:
            first, _, last = array.tolist()
            assert first == ((0,) * len(dtypes) if len(dtypes) > 1 else 0)
            assert last == (tuple(range(1, 1 + len(dtypes))) if len(dtypes) > 1 else 1)


def everything(pair, others, begin, end, best):
    """Use what loops use: slices, starred tuples, loops over arrays, else, None, and what is beside them."""
    kept = scratch(8)
    prefetch(pair.values, end)
    part = pair.values[begin:end]
    total = 0
    for value in part:
        if value < 0:
            continue
        total += value
    for i in range(8):
        kept[i] = i * pair.shift
    count = len(part)
    while count > 0:
        count -= 1
        if part[count] == 4:
            break
    else:
        count = -1
    numbers = (total, *others, kept[7])
    if best is None:
        return pick((True, False, True), (numbers[0], 1.5, 2), (0, numbers[-1], 0)), count, numbers[1:]
    return pick((True, False, True), (best, 1.5, 2), (0, numbers[-1], 0)), count, numbers[1:]


@pytest.mark.parametrize("best", [None, 3])
def test_loops_mean_what_python_runs(best: int | None) -> None:
    given = Pair(np.array([5, -1, 4, 2, 9]), 3), (1.5, 2), np.uint64(1), np.uint64(4), best
    assert Kernel(everything, "everything")(*given) == everything(*given)


def test_the_bits_of_a_mask_are_walked_from_the_lowest() -> None:
    def positions(mask, found):
        count = 0
        while mask != np.uint64(0):
            found[count] = lowest_bit(mask)
            mask &= mask - np.uint64(1)
            count += 1
        return count

    for bits in ([0], [63], [0, 1, 31, 32, 62, 63], list(range(64)), []):
        mask, found = np.uint64(sum(1 << bit for bit in bits)), np.zeros(64, dtype=np.int64)
        assert Kernel(positions, "positions")(mask, found) == len(bits)
        assert found[: len(bits)].tolist() == bits
        assert [lowest_bit(np.uint64(1 << bit)) for bit in bits] == bits


@pytest.mark.parametrize("code", "bBhHiIlL")
def test_an_exchange_returns_what_was_there(code: str) -> None:
    def swap(values, at, value):
        return exchange(values, at, value)

    values = np.array([5, 6, 7], dtype=code)
    assert Kernel(swap, f"swap {code}")(values, 1, 9) == 6
    assert values.tolist() == [5, 9, 7]


def test_of_exchanges_by_many_threads_each_value_comes_back_once() -> None:
    def pass_on(begin, end, values, found):
        for i in range(begin, end):
            found[i] = exchange(values, 0, i)

    values, count, parts = np.full(1, -1), 200_000, 4
    found = np.empty(count * parts, dtype=np.int64)
    run = Kernel(pass_on, "pass on").over(values, found)
    threads = [threading.Thread(target=run, args=(count * i, count * (i + 1))) for i in range(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([*found.tolist(), int(values[0])]) == list(range(-1, count * parts))


def test_what_is_called_with_other_types_is_compiled_again() -> None:
    def add(a, b):
        return a + b

    run = Kernel(add, "add")
    for a, b, total in ((1, 2, 3), (1, 2.5, 3.5), (0.5, 1, 1.5), (2**63 - 1, 1, -(2**63)), (1, 2, 3)):
        assert run(a, b) == total


@pytest.mark.parametrize("values", [np.broadcast_to(2.0, (5,)), np.arange(10.0)[::2]])
def test_longer_arrays_of_a_stride_follow_shorter_ones(values: Any) -> None:
    def total(numbers):
        found = 0.0
        for i in range(len(numbers)):
            found += numbers[i]
        return found

    run = Kernel(total, "total")
    for size in (0, 1, 5):
        assert run(values[:size]) == values[:size].sum()


def test_a_range_runs_over_arguments_that_are_packed_once() -> None:
    def total(begin, end, values, factor):
        found = 0
        for i in range(begin, end):
            found += values[i]
        return found * factor

    over = Kernel(total, "total").over(np.arange(100), 2)
    assert [over(np.uint64(a), np.uint64(a + 10)) for a in (0, 50)] == [90, 1090]


def test_threads_that_call_first_all_find_it() -> None:
    def total(pair, factor):
        return (pair.values[0] + pair.shift) * factor

    run = Kernel(total, "total of pair")
    gate, results = threading.Barrier(4), []

    def call(n: int) -> None:
        gate.wait()
        results.extend(run(Pair(np.full(1, float(n)), n), 2) for _ in range(20))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(4.0 * n for n in range(4) for _ in range(20))


def test_what_was_compiled_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(a, b):
        return a + b

    assert Kernel(add, "kept")(1, 2) == 3
    monkeypatch.setattr(Kernel, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert Kernel(add, "kept")(3, 4) == 7
    with pytest.raises(BaseException, match="compiled again"):
        Kernel(add, "kept")(3, 4.5)


UNFIT: list[Any] = ["text", np.zeros((2, 2, 2)), np.zeros(2, ">i8"), np.zeros(2, "U1"), [1, 2]]


@pytest.mark.parametrize("value", UNFIT, ids=repr)
def test_what_it_does_not_take(value: Any) -> None:
    def same(x):
        return 1

    with pytest.raises(TypeError, match="compiled code takes"):
        Kernel(same, "same")(value)


def test_kernels_of_modules_know_their_source() -> None:
    from sigps.kernels.cpu.priority import best_waiting

    waiting, status = np.ones(3, np.uint8), np.zeros(3, np.uint8)
    given = 0, 3, waiting, status, np.array([2.0, 1.0, 3.0]), np.array([1, 2, 3], np.uint32), True
    assert best_waiting(*given) == best_waiting.py_func(*given) == (3, 6, 1.0)
    assert kernels._source_key(best_waiting.__module__)


def test_code_is_kept_by_the_files_beside_its_own(tmp_path: Path) -> None:
    """What a function calls there is compiled with it: the chunks of a page, for one, with its rows."""
    (tmp_path / "rows.py").write_text("1")
    (tmp_path / "chunks.py").write_text("1")
    before = kernels._hash_of.__wrapped__(tmp_path)
    assert before == kernels._hash_of.__wrapped__(tmp_path)
    (tmp_path / "chunks.py").write_text("2")
    assert before != kernels._hash_of.__wrapped__(tmp_path)
