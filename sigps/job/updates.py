"""Batches of updates: one in memory, and those of files and tables, read piece by piece.

A row is an edge, and `op` says whether it is inserted or deleted; rows are taken in their order. A batch is deleted and
inserted at once (`Graph.apply`), so what its rows come to one after the other is worked out here: a delete takes what
was inserted before it, in this batch too.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError, GraphError
from sigps.extras import needs
from sigps.graph.formats.structures import batches_of
from sigps.graph.user_arrays import as_ids

__all__ = ["Updates", "batch_of_rows", "is_number", "read_updates"]

Columns = dict[str, NDArray[Any]]

_NAMES = {
    "op": ("op", "operation", "action", "type"),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "time": ("time", "timestamp", "date"),
}
_INSERTS = {"+", "a", "add", "i", "insert", "1", "true"}
_DELETES = {"-", "d", "r", "del", "delete", "remove", "-1", "0", "false"}


@dataclass(frozen=True, eq=False)
class Updates:
    """One batch: edges to delete, then edges to insert, as `Graph.apply` takes them.

    Attributes:
        inserts: Edges to insert.
        deletes: Edges to delete.
        times: [inserts]: when each came, where the stream has a window.
        vertices: Ids that become vertices with or without an edge.
        num_rows: Rows of the input that it comes from.
        delete_vertices: Ids of vertices that go first, with all their edges.
    """

    inserts: Any = None
    deletes: Any = None
    times: Any = None
    vertices: Any = None
    num_rows: int = 0
    delete_vertices: Any = None


def read_updates(
    data: Any,
    *,
    every: int = 100_000,
    columns: Mapping[str, str] | None = None,
    directed: bool = True,
    skip: int = 0,
) -> Iterator[Updates]:
    """Yield batches of updates of a file, of files, or of a table; reads no more than the next batch needs.

    A row has a `source`, a `target`, and perhaps an `op` (`+`, `insert`, `add`, `1`; or `-`, `delete`, `remove`, `-1`;
    without the column all are inserts), a `time` (numbers, or timestamps, which become seconds), and edge columns by
    their names. A text file without a header has the columns source, target and perhaps weight, as the streams of the
    GraphChallenge have, or begins with the op.

    Args:
        data: A path, of CSV or TSV text (`.csv`, `.tsv`, `.txt`, and these compressed with gzip), Parquet (`.parquet`),
            or Arrow (`.arrow`, `.feather`); a list of paths, where a batch ends with each file; an Arrow stream or data
            frame.
        every: Rows of a batch.
        columns: Names of columns that are called otherwise: `{"op": "kind", "time": "when"}`.
        directed: Whether the graph is: else a delete takes what was inserted with its ends the other way round.
        skip: Batches to leave out at the beginning.

    Raises:
        ConfigError: If `every` is no count, or a file's format is unknown.
        GraphError: If a column or a value is missing, or an op is unknown.

    >>> import pyarrow
    >>> rows = pyarrow.table({"op": ["+", "+", "-"], "source": [1, 2, 1], "target": [2, 3, 2], "weight": [5, 6, 0]})
    >>> [batch] = read_updates(rows)
    >>> [part.tolist() for part in batch.inserts[:2]], [part.tolist() for part in batch.deletes]
    ([[2], [3]], [[1], [2]])
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ConfigError(f"every={every!r} must be a number of rows, at least 1")
    names = dict(columns or {})
    if unknown := names.keys() - _NAMES.keys():
        raise ConfigError(f"columns= names {min(unknown)!r}; it may name {', '.join(_NAMES)}")
    batches = _batches(data, every)
    for rows in itertools.islice(batches, skip, None):
        yield batch_of_rows(rows, names, directed=directed)


def batch_of_rows(rows: Columns, names: Mapping[str, str], *, directed: bool) -> Updates:
    """Return the batch that rows come to, one after the other."""
    rows = dict(rows)
    found = {part: _taken(rows, part, names) for part in _NAMES}
    source, target = found["source"], found["target"]
    if source is None or target is None:
        part = "source" if source is None else "target"
        raise GraphError(
            f"updates: no column is the {part}; there are {', '.join(rows)}. Name it in columns="
        )
    ends = as_ids(source, "updates: sources"), as_ids(target, "updates: targets")
    num_rows, op = ends[0].size, found["op"]
    is_delete = np.zeros(num_rows, dtype=np.bool_) if op is None else _deletes(op)
    stays = ~is_delete
    if is_delete.any():
        stays &= ~_deleted_later(*ends, is_delete, directed=directed)
    times = None if found["time"] is None else _numbers(found["time"])[stays]
    inserts = ends[0][stays], ends[1][stays], {name: values[stays] for name, values in rows.items()}
    deletes = (ends[0][is_delete], ends[1][is_delete]) if is_delete.any() else None
    return Updates(inserts, deletes, times, num_rows=num_rows)


def _taken(rows: Columns, part: str, names: Mapping[str, str]) -> NDArray[Any] | None:
    if part in names:
        if names[part] not in rows:
            raise GraphError(f"updates: there is no column {names[part]!r}; there are {', '.join(rows)}")
        return rows.pop(names[part])
    name = next((name for name in _NAMES[part] if name in rows), None)
    return None if name is None else rows.pop(name)


def _deletes(op: NDArray[Any]) -> NDArray[np.bool_]:
    kinds, codes = np.unique(np.char.lower(np.char.strip(op.astype(np.str_))), return_inverse=True)
    if unknown := [str(kind) for kind in kinds if kind not in _INSERTS | _DELETES]:
        raise GraphError(
            f"updates: the op {unknown[0]!r} is not known; it is one of {', '.join(sorted(_INSERTS))} to insert, "
            f"{', '.join(sorted(_DELETES))} to delete"
        )
    found: NDArray[np.bool_] = np.array([kind in _DELETES for kind in kinds], dtype=np.bool_)[codes]
    return found


def _deleted_later(
    sources: NDArray[Any], targets: NDArray[Any], is_delete: NDArray[np.bool_], *, directed: bool
) -> NDArray[np.bool_]:
    """Return which rows name an edge that a later row deletes."""
    codes = np.unique(np.concatenate([sources, targets]), return_inverse=True)[1].reshape(2, -1)
    if not directed:
        codes = np.sort(codes, axis=0)
    pairs = np.unique(codes[0] * np.int64(2 * sources.size) + codes[1], return_inverse=True)[1]
    last = np.full(sources.size, -1)
    at = np.flatnonzero(is_delete)
    np.maximum.at(last, pairs[at], at)
    found: NDArray[np.bool_] = last[pairs] > np.arange(sources.size)
    return found


def _numbers(times: NDArray[Any]) -> NDArray[Any]:
    if times.dtype.kind == "M":
        return times.astype("datetime64[us]").astype(np.int64) / 1e6
    if times.dtype.kind not in "iuf":
        raise GraphError(f"updates: a time is a number or a timestamp, not {times.dtype}")
    return times


def _batches(data: Any, every: int) -> Iterator[Columns]:
    with needs("pyarrow"):
        import pyarrow  # noqa: F401
    if isinstance(data, (str, os.PathLike)):
        yield from _in_batches(_read(Path(data)), every)
    elif isinstance(data, Sequence) and all(isinstance(path, (str, os.PathLike)) for path in data):
        for path in data:
            yield from _in_batches(_read(Path(path)), every)
    else:
        yield from _in_batches(batches_of(data), every)


def _in_batches(pieces: Iterable[Any], every: int) -> Iterator[Columns]:
    """Yield columns of `every` rows at a time, and of what is left."""
    waiting: list[Any] = []
    size = 0
    for piece in pieces:
        at = 0
        while at < piece.num_rows:
            part = piece.slice(at, every - size)
            waiting.append(part)
            size, at = size + part.num_rows, at + part.num_rows
            if size == every:
                yield _columns(waiting)
                waiting, size = [], 0
    if size:
        yield _columns(waiting)


def _columns(pieces: list[Any]) -> Columns:
    import pyarrow

    table = pyarrow.Table.from_batches(pieces)
    found: Columns = {}
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            raise GraphError(f"updates: the column {name!r} has {column.null_count:,} missing values")
        values = column.to_numpy()
        found[name] = np.array(values.tolist()) if values.dtype.kind == "O" else values
    return found


def _read(path: Path) -> Iterable[Any]:
    import pyarrow.csv
    import pyarrow.parquet

    if not path.exists():
        raise GraphError(f"updates: there is no file {path}")
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix == ".parquet":
        batches: Iterable[Any] = pyarrow.parquet.ParquetFile(path).iter_batches()
        return batches
    if suffix in (".arrow", ".feather", ".ipc"):
        reader = pyarrow.ipc.open_file(path)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    if suffix in (".csv", ".tsv", ".txt"):
        text: Iterable[Any] = _read_text(path)
        return text
    raise ConfigError(
        f"updates: {path.name} has no known format; files are .csv, .tsv, .txt, .parquet, .arrow or .feather"
    )


def _read_text(path: Path) -> Any:
    import gzip

    import pyarrow.csv

    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as text:
        first = text.readline().strip()
    delimiter = next((mark for mark in ("\t", ",", "|", ";") if mark in first), " ")
    fields = [part.strip() for part in first.split(delimiter)]
    options: dict[str, Any] = {}
    begins_with_op = fields[0].lower() in _INSERTS | _DELETES and not is_number(fields[0])
    if begins_with_op or all(is_number(part) for part in fields):
        names = ["op", "source", "target", "time"] if begins_with_op else ["source", "target", "weight"]
        if not 2 + begins_with_op <= len(fields) <= len(names):
            raise GraphError(
                f"updates: {path}:1 has {len(fields)} columns and no header that names them: source, target, ..."
            )
        options["column_names"] = names[: len(fields)]
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter)
    try:
        return pyarrow.csv.open_csv(path, pyarrow.csv.ReadOptions(**options), parse)
    except pyarrow.ArrowInvalid as error:
        raise GraphError(f"updates: {path}: {error}") from None


def is_number(text: str) -> bool:
    """Tell whether a field of a text file is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
