"""Arrow's columns as NumPy's arrays: of every kind, of slices, of any number of chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest

from sigps.graph.formats.arrow_columns import arrow_array, numbers_of, one_array, strings_of


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([7, -1, 2**62], np.int64),
        ([0.5, -0.25, 3.0], np.float32),
        ([True, False, True], np.bool_),
        ([1, 255, 0], np.uint8),
    ],
)
def test_arrow_numbers_as_numpy(values: list[Any], kind: type[np.generic]) -> None:
    array = pyarrow.array([values[0], *values], type=pyarrow.from_numpy_dtype(kind)).slice(1)
    numbers = numbers_of(array)
    assert (numbers.dtype, numbers.tolist()) == (np.dtype(kind), values)


@pytest.mark.parametrize("chunks", [[], [[1, 2]], [[1], [], [2, 3]]])
def test_a_column_as_one_array(chunks: list[list[int]]) -> None:
    column = pyarrow.chunked_array(chunks, type=pyarrow.int64())
    assert one_array(column).to_pylist() == [value for chunk in chunks for value in chunk]


@pytest.mark.parametrize("chunks", [[], [["b", "a"], ["b", "äé"]]])
def test_texts(chunks: list[list[str]]) -> None:
    column = pyarrow.chunked_array(chunks, type=pyarrow.string())
    strings = strings_of(one_array(column), "names")
    assert (strings.dtype.kind, strings.tolist()) == ("U", [text for chunk in chunks for text in chunk])


@pytest.mark.parametrize(
    "values",
    [
        np.arange(3, dtype=np.uint8),
        np.arange(12, dtype=np.float32)[::2],
        np.array([True] * 9 + [False]),
        np.array([[True, False], [False, True]]),
        np.zeros((0, 3)),
        np.ma.MaskedArray(np.arange(9), np.arange(9) % 3 == 0),
        np.ma.MaskedArray(np.arange(3)),
        np.array(["a", "", "z\u00fcrich", "\u65e5\u672c"]),
        np.array([], dtype="U3"),
        np.array(["a", None], dtype=object),
        np.arange(3, dtype=np.float16),
    ],
    ids=lambda values: f"{values.dtype}-{values.shape}",
)
def test_columns_of_arrow_are_those_of_its_own_conversion(values: Any) -> None:
    column = pyarrow.array(values.reshape(-1))
    if values.ndim > 1:
        column = pyarrow.FixedSizeListArray.from_arrays(column, values.shape[1])
    found = arrow_array(values)
    found.validate(full=True)
    assert found.type == column.type
    assert found.equals(column)


def test_a_zero_character_inside_a_text_stays() -> None:
    assert arrow_array(np.array(["x\0y", "q"])).to_pylist() == ["x\0y", "q"]  # pyarrow.array cuts there
