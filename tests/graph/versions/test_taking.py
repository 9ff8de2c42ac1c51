"""Ids and numbers in other types, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sigps.device.shared_copies import in_parts
from sigps.graph.versions.taking import take_gids, take_numbers

INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float32, np.float64]


@settings(deadline=None)  # a first call compiles
@given(st.data(), st.sampled_from(INTEGERS))
def test_ids_below_a_number_are_gids(data: Any, kind: Any) -> None:
    oids = data.draw(arrays.arrays(kind, st.integers(1, 20)))
    for below in (1, 100, 2**32):
        gids = np.zeros(oids.size, np.uint32)
        work = take_gids(oids, below, gids)
        assert work is not None
        (are_gids,) = in_parts(work)
        assert are_gids == all(0 <= oid < below for oid in oids.tolist())
        assert not are_gids or gids.tolist() == oids.tolist()


@settings(deadline=None)  # a first call compiles
@given(st.data(), st.sampled_from(INTEGERS + FLOATS), st.sampled_from(INTEGERS + FLOATS))
def test_numbers_that_fit_are_the_same(data: Any, kind: Any, to: Any) -> None:
    few = {"elements": st.integers(0, 100)} if data.draw(st.booleans()) else {}
    values = data.draw(arrays.arrays(kind, st.integers(1, 20), **few))
    taken = np.zeros(values.size, to)
    work = take_numbers(values, taken)
    if np.dtype(kind).kind == "f" and np.dtype(to).kind != "f":
        assert work is None
        return
    assert work is not None
    (fit,) = in_parts(work)
    with np.errstate(all="ignore"):
        cast = values.astype(to)
        expected = np.isfinite(cast).all() if np.dtype(kind).kind == "f" else (cast == values).all()
    assert fit == expected
    assert not fit or taken.tolist() == cast.tolist()


@pytest.mark.parametrize("values", [np.array(["1"]), np.array([True]), np.array([1], np.float16)])
def test_others_are_not_taken(values: Any) -> None:
    assert take_numbers(values, np.zeros(1)) is None
    assert take_gids(values, 5, np.zeros(1, np.uint32)) is None


@pytest.mark.parametrize("kind", [">i8", ">f8"])
def test_numbers_of_another_order_of_bytes_are_not_taken(kind: str) -> None:
    assert take_numbers(np.ones(3, kind), np.zeros(3)) is None


def test_every_second_number_is_taken() -> None:
    taken = np.zeros(5, np.uint32)
    work = take_gids(np.arange(10)[::-2], 10, taken)
    assert work is not None
    assert in_parts(work) == [True]
    assert taken.tolist() == [9, 7, 5, 3, 1]
