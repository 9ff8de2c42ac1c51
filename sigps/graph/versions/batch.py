"""Batches of updates as users give them: pairs of arrays or tables, to ids and columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.blocks import import_optional
from sigps.graph.formats.structures import batches_of
from sigps.graph.user_arrays import as_column, as_ids, as_numbers, on_host

__all__ = ["Changes", "LaterChanges", "as_changes"]

_SOURCES, _TARGETS = ("source", "src", "from"), ("target", "dst", "to")


@dataclass
class Changes:
    """Edges to insert or to delete, in their order.

    Attributes:
        sources: [edges] ids.
        targets: [edges] ids.
        columns: [edges] each: of inserts all columns of the graph, of deletes those that must be equal.
    """

    sources: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    targets: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.sources.size

    def copied(self) -> Changes:
        """Return the same edges in arrays of their own."""
        columns = {name: column.copy() for name, column in self.columns.items()}
        return Changes(self.sources.copy(), self.targets.copy(), columns)

    def cast(self, types: Mapping[str, np.dtype[Any]], what: str) -> Changes:
        """Return the same edges, columns in these types.

        Raises:
            GraphError: If a value does not fit.
        """
        columns = {name: _typed(values, name, types[name], what) for name, values in self.columns.items()}
        return Changes(self.sources, self.targets, columns)

    def at(self, where: Any) -> Changes:
        """Return some of the edges."""
        columns = {name: column[where] for name, column in self.columns.items()}
        return Changes(self.sources[where], self.targets[where], columns)


class LaterChanges(Changes):
    """Edges that are elsewhere, and come when they are first read.

    Args:
        size: How many.
        bring: Returns them.
    """

    def __init__(self, size: int, bring: Callable[[], Changes]) -> None:
        self._size, self._bring = size, bring

    @property
    def size(self) -> int:
        return self._size

    def __getattr__(self, name: str) -> Any:
        if name not in ("sources", "targets", "columns") or "_bring" not in self.__dict__:
            raise AttributeError(name)
        self.__dict__.update(self._bring().__dict__)
        del self._bring
        return self.__dict__[name]


def as_changes(given: Any, what: str, columns: Mapping[str, np.dtype[Any]], *, casts: bool = True) -> Changes:
    """Return edges as a user gives them: None, (sources, targets), the same with weights or named columns, or a table.

    A table is any Arrow stream or data frame: its columns `source` and `target` (or src and dst, from and to, or the
    first two) are the ends, the others edge columns by their names.

    Args:
        given: The edges.
        what: `"inserts"` or `"deletes"`: inserts need every column of the graph.
        columns: The types of the graph's edge columns.
        casts: Whether columns get these types; else they are left as they are, and are not checked.

    Raises:
        GraphError: If ids, lengths or columns are wrong, or a value does not fit its column's type.
    """
    nothing = {name: np.empty(0, dtype) for name, dtype in columns.items()} if what == "inserts" else {}
    if given is None:
        return Changes(columns=nothing)
    sources, targets, found = _parts(given, what)
    ends = as_ids(sources, f"{what}: sources"), as_ids(targets, f"{what}: targets")
    for name, values in (("targets", ends[1]), *found.items()):
        if np.shape(values) != ends[0].shape or ends[0].ndim != 1:
            raise GraphError(
                f"{what}: {name} has shape {np.shape(values)}, sources {ends[0].shape}: every edge needs one value"
            )
    if ends[0].size and (ends[0].dtype.kind == "U") != (ends[1].dtype.kind == "U"):
        raise GraphError(f"{what}: one end of the edges has string ids, the other integers")
    if unknown := found.keys() - columns.keys():
        known = ", ".join(columns) or "none"
        raise GraphError(f"{what}: the graph has no edge column {min(unknown)!r}; it has: {known}")
    missing = [name for name in columns if name not in found]
    if what == "inserts" and missing and ends[0].size:
        raise GraphError(
            f"inserts: the graph's edges have a column {missing[0]!r}, so every new one needs it"
        )
    values = {name: as_numbers(on_host(found[name], name), name) for name in columns if name in found}
    changes = Changes(*ends, nothing | values)
    return changes.cast(columns, what) if casts else changes


def _parts(given: Any, what: str) -> tuple[Any, Any, dict[str, Any]]:
    if isinstance(given, (tuple, list)):
        if len(given) == 2:
            return given[0], given[1], {}
        if len(given) == 3:
            columns = dict(given[2]) if isinstance(given[2], Mapping) else {"weight": given[2]}
            return given[0], given[1], columns
        raise GraphError(
            f"{what} has {len(given)} parts: give (sources, targets), (sources, targets, weights), (sources, targets, "
            "{column: values}), or a table"
        )
    if isinstance(given, Mapping):
        table = dict(given)
    else:
        import_optional("pyarrow", what)
        reader = batches_of(given)
        read = reader.read_all()
        table = {name: _plain(read.column(name)) for name in read.column_names}
    names = list(table)
    if len(names) < 2:
        raise GraphError(f"{what}: the table has the columns {names}; it needs a source and a target")
    source = next((name for name in _SOURCES if name in table), names[0])
    target = next((name for name in _TARGETS if name in table), names[1])
    return table.pop(source), table.pop(target), table


def _plain(column: Any) -> NDArray[Any]:
    if column.null_count:
        raise GraphError(
            f"a column of the table has {column.null_count:,} missing values; fill or remove such rows"
        )
    values = column.to_numpy()
    return np.array(values.tolist()) if values.dtype.kind == "O" else values


def _typed(values: NDArray[Any], name: str, dtype: np.dtype[Any], what: str) -> NDArray[Any]:
    try:
        column = as_column(values, name)
    except GraphError as error:
        raise GraphError(f"{what}: {error}") from None
    with np.errstate(invalid="ignore", over="ignore"):
        cast = column.astype(dtype, copy=False)
    if column.dtype.kind == "f" and dtype.kind == "f" and np.isfinite(cast).all():
        return cast  # rounded to the graph's precision
    wrong = np.flatnonzero(cast != column)
    if wrong.size:
        at = int(wrong[0])
        raise GraphError(f"{what}: {name}[{at}] is {column[at]}, which the graph's {dtype} cannot hold")
    return cast
