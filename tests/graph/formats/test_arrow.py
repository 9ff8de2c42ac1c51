from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from graph_files import arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]
TABLE = {"source": [30, 10, 30], "target": [10, 20, 10], "weight": [0.5, 2.0, 7.0], "time": [7, 8, 9]}


def save(path: Path, columns: dict[str, Any], rows_a_group: int = 2) -> Path:
    """Write columns as Parquet or Arrow IPC, as the suffix says."""
    table = pyarrow.table(columns)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=rows_a_group)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows_a_group)
    return path


@pytest.fixture(params=["g.parquet", "g.arrow"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a path for each format."""
    return tmp_path / str(request.param)


def test_edges_and_what_is_not_read(path: Path) -> None:
    graph = load(save(path, TABLE))
    assert arcs(graph) == [(10, 20), (30, 10), (30, 10)]
    assert vertices(graph) == [10, 20, 30]
    assert graph.report.format == path.suffix[1:]
    assert graph.report.notes == ["columns not read: weight, time (weights= and columns= read them)"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"weights": True}, [(10, 20, 2.0), (30, 10, 0.5), (30, 10, 7.0)]),
        ({"weights": "time"}, [(10, 20, 8), (30, 10, 7), (30, 10, 9)]),
        ({"weights": 3}, [(10, 20, 8), (30, 10, 7), (30, 10, 9)]),
        ({"columns": {"t": "time"}}, [(10, 20, 8), (30, 10, 7), (30, 10, 9)]),
        ({"source": "target", "target": 0}, [(10, 30), (10, 30), (20, 10)]),
        (
            {"directed": False, "duplicates": "sum", "weights": True},
            [(10, 20, 2.0), (10, 30, 7.5), (20, 10, 2.0), (30, 10, 7.5)],
        ),
        ({"ids": "string"}, [("10", "20"), ("30", "10"), ("30", "10")]),
    ],
)
def test_options(path: Path, options: dict[str, Any], expected: list[Any]) -> None:
    assert arcs(load(save(path, TABLE), **options)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pyarrow.array([1, 2], pyarrow.uint8()), np.int64),
        (pyarrow.array([1, 2], pyarrow.int32()), np.int64),
        (pyarrow.array([1, 2], pyarrow.float32()), np.float32),
        (pyarrow.array([1, 2], pyarrow.float64()), np.float64),
        (pyarrow.array([decimal.Decimal(1), decimal.Decimal(2**53 + 1)]), np.int64),
        (pyarrow.array([decimal.Decimal("1.5"), decimal.Decimal(2)]), np.float64),
        (pyarrow.array([True, False]), np.int64),
    ],
)
def test_weights_keep_their_type(path: Path, values: Any, expected: Any) -> None:
    graph = load(save(path, {"a": [1, 2], "b": [2, 3], "w": values}), weights="w")
    assert graph.columns["weight"].dtype == expected
    assert [w for _, _, w in arcs(graph)] == values.to_pylist()


def test_decimals_beyond_int64(path: Path) -> None:
    values = pyarrow.array([decimal.Decimal(1), decimal.Decimal(2**63)])
    with pytest.raises(GraphError, match=r"'w' is decimal.* beyond int64; write it as float64"):
        load(save(path, {"a": [1, 2], "b": [2, 3], "w": values}), weights="w")


def test_times_become_integers(path: Path) -> None:
    day = [datetime.date(1970, 1, 2), datetime.date(1970, 1, 11)]
    when = [datetime.datetime(1970, 1, 1, 0, 0, 1), datetime.datetime(1970, 1, 1, 0, 0, 2)]
    table = {"a": [1, 2], "b": [2, 3], "day": day, "when": pyarrow.array(when, pyarrow.timestamp("ms"))}
    graph = load(save(path, table), columns={"day": "day", "when": "when"})
    assert arcs(graph) == [(1, 2, 1, 1000), (2, 3, 10, 2000)]


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_text_ids(path: Path, kind: str) -> None:
    names = pyarrow.array(["ann", "zoë", "ann"])
    types = {"string": pyarrow.string(), "large_string": pyarrow.large_string()}
    column = names.dictionary_encode() if kind == "dictionary" else names.cast(types[kind])
    graph = load(save(path, {"a": column, "b": ["bob", "ann", "eve"]}))
    assert arcs(graph) == [("ann", "bob"), ("ann", "eve"), ("zoë", "ann")]


def test_ids_of_other_number_types(path: Path) -> None:
    small = pyarrow.array([1, 2], pyarrow.uint16())
    whole = pyarrow.array([2.0, 3.0])
    assert arcs(load(save(path, {"a": small, "b": whole}))) == [(1, 2), (2, 3)]
    large = pyarrow.array([2**40, 2**62], pyarrow.uint64())
    assert arcs(load(save(path, {"a": large, "b": [1, 2]}))) == [(2**40, 1), (2**62, 2)]


def test_usual_names_are_found_in_any_order(path: Path) -> None:
    assert arcs(load(save(path, {"kind": [5], "dst": [2], "src": [1]}))) == [(1, 2)]


def test_feather_and_content_without_suffix(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(pyarrow.table({"a": [1], "b": [2]}), tmp_path / "g.feather")
    assert arcs(load(tmp_path / "g.feather")) == [(1, 2)]
    bare = save(tmp_path / "g.parquet", {"a": [1], "b": [2]}).rename(tmp_path / "g")
    assert load(bare).report.format == "parquet"


@pytest.mark.parametrize("size", [2, 3, 7])
def test_ranks_together_load_what_one_loads(path: Path, run_ranks: Ranks, size: int) -> None:
    draw = np.random.default_rng(1).integers(0, 50, (3, 100))
    save(path, {"a": draw[0], "b": draw[1], "w": draw[2]}, rows_a_group=20)
    one = load(path, weights="w")
    assert load_in_ranks(run_ranks, size, path, weights="w") == [arcs(one), vertices(one), 0]


def test_no_rows(path: Path) -> None:
    empty = pyarrow.array([], pyarrow.int64())
    graph = load(save(path, {"a": empty, "b": empty}))
    assert (graph.num_vertices, graph.num_edges) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "options", "wrong"),
    [
        ({"a": [1]}, {}, r"an edge needs two columns, but the file has 1: \['a'\]"),
        ({"a": [1, None], "b": [1, 2]}, {}, r"column 'a' has 1 missing values; fill or remove"),
        ({"a": [1.5], "b": [1]}, {}, r"column 'a'\[0\] is 1\.5: .* must be whole"),
        ({"a": [True], "b": [1]}, {}, r"column 'a' is bool; ids must be integers or text"),
        ({"a": ["x"], "b": ["y"]}, {"ids": "int"}, r"column 'a' holds text, but ids='int'"),
        (
            {"a": [1], "b": [2], "w": [float("nan")]},
            {"weights": True},
            r"column 'w' has nan \(row 0 of its batch\)",
        ),
        ({"a": [1], "b": [2], "w": [float("inf")]}, {"weights": "w"}, r"column 'w' has inf"),
        ({"a": [1], "b": [2], "w": ["x"]}, {"weights": "w"}, r"column 'w' is string; .* must be numeric"),
        ({"a": [1], "b": [2], "w": [None]}, {"weights": "w"}, r"column 'w' has 1 missing values"),
        (
            {"a": [1], "b": [2], "cost": [1]},
            {"weights": "coast"},
            r"named 'coast', but the columns are a, b, cost; try 'cost'",
        ),
        ({"a": [1], "b": [2]}, {"weights": True}, r"column for 'weight' is number 2"),
        (
            {"a": [1], "b": [2], "w": [2]},
            {"weights": ("w", "int64")},
            r"has the file's type; leave 'int64' away",
        ),
        ({"a": pyarrow.array([2**63], pyarrow.uint64()), "b": [1]}, {}, r"above the largest id"),
    ],
)
def test_what_is_wrong_is_said(
    path: Path, columns: dict[str, Any], options: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(save(path, columns), **options)


def test_damaged_files(path: Path) -> None:
    data = save(path, {"a": list(range(5000)), "b": list(range(5000))}, rows_a_group=5000).read_bytes()
    write(path, data[: len(data) // 2])
    with pytest.raises(GraphError, match=rf"{path.name}: cannot be read as (Parquet|Arrow IPC)"):
        load(path)
    write(path, b"junk" * 100)
    with pytest.raises(GraphError, match=rf"{path.name}: cannot be read as (Parquet|Arrow IPC)"):
        load(path)
    with pytest.raises(GraphError, match="no such file"):
        load(path.with_name("h.parquet"))


def test_damaged_pages(tmp_path: Path) -> None:
    path = save(tmp_path / "g.parquet", {"a": list(range(5000)), "b": list(range(5000))}, rows_a_group=5000)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(bytes(data))
    with pytest.raises(GraphError, match=r"g\.parquet: cannot be read as a table"):
        load(path)
