"""The columns of a table that hold sources, targets, the weight and further values, by name or position.

Used for text with delimiters, for Parquet and Arrow files, and for tables in memory.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from sigps.errors import GraphError
from sigps.graph.formats.edge_input import ColumnRef, LoadOptions, RoundedWeightError
from sigps.graph.formats.numerals import is_float
from sigps.graph.formats.text_table import Column

__all__ = [
    "END_NAMES",
    "column_index",
    "end_column",
    "is_number",
    "is_whole",
    "value_columns",
    "value_places",
]

END_NAMES = {
    "source": ("source", "src", "from", "fromnodeid"),
    "target": ("target", "dst", "to", "tonodeid", "destination"),
}
"""Usual names of the columns of ids, in lower case."""


def value_places(options: LoadOptions, names: Sequence[str], where: str) -> dict[str, tuple[int | str, str]]:
    """Return the places of the weight and the further columns, with their requested types, empty if none.

    Raises:
        GraphError: If two options name the same column.
    """
    wanted: dict[str, ColumnRef] = {}
    if options.weights is True:
        wanted["weight"] = next((name for name in names if name.lower() in ("weight", "w")), 2)
    elif options.weights is not None and options.weights is not False:
        wanted["weight"] = options.weights
    for name, ref in (options.columns or {}).items():
        if name in ("source", "target") or name in wanted:
            raise GraphError(f"{where}: columns= has {name!r}, which another option already names; rename it")
        wanted[name] = ref
    return {name: ref if isinstance(ref, tuple) else (ref, "") for name, ref in wanted.items()}


def end_column(end: str, place: int | str | None, names: Sequence[str], where: str) -> int:
    """Return the position of the column of source or target ids: `place`, or one of a usual name, or 0 or 1.

    Raises:
        GraphError: If there is no column `place`.
    """
    if place is None:
        lowered = [name.lower() for name in names]
        position = 0 if end == "source" else 1
        place = next((lowered.index(name) for name in END_NAMES[end] if name in lowered), position)
    return column_index(place, names, f"the {end} column", where)


def column_index(place: int | str, names: Sequence[str], what: str, where: str) -> int:
    """Return the position of a column that is given by position or name.

    Raises:
        GraphError: If there is no such column; names the most similar one.
    """
    if isinstance(place, str):
        if place in names:
            return list(names).index(place)
        known = [name for name in names if name]
        if not known:
            raise GraphError(
                f"{where}: {what} is named {place!r}, but the file has no header; give its position, "
                "or header=True where the first row names the columns"
            )
        near = difflib.get_close_matches(place, known, n=1, cutoff=0.0)[0]
        raise GraphError(
            f"{where}: {what} is named {place!r}, but the columns are {', '.join(known)}; try {near!r}"
        )
    if not 0 <= place < len(names):
        raise GraphError(
            f"{where}: {what} is number {place} (counted from 0), but rows have {len(names)} "
            f"field{'s' if len(names) != 1 else ''}: give one of 0 to {len(names) - 1}"
        )
    return place


def value_columns(
    options: LoadOptions, names: Sequence[str], rows: Sequence[Sequence[str]], where: str
) -> dict[str, Column]:
    """Return the weight and the further columns that `options` requests.

    Weights are float64 unless a type is given, or int64 with `options.whole_weights`; other columns are int64 if they
    are whole in the first rows. A float64 that is not asked for refuses whole numbers that it would round.

    `names` are the file's column names, empty without a header, and `rows` the first rows' fields.

    Raises:
        GraphError: If there is no such column or type.
    """
    result = {}
    for name, (place, kind) in value_places(options, names, where).items():
        index = column_index(place, names, f"the column for {name!r}", where)
        whole = name != "weight" and all(is_whole(row[index]) for row in rows if index < len(row))
        reason = options.whole_weights if name == "weight" and not kind else None
        rounding = None if kind else RoundedWeightError if name == "weight" else GraphError
        kind = kind or ("int64" if whole or reason else "float64")
        if kind not in _TYPES:
            raise GraphError(f"column {name!r} has type {kind!r}; choose one of {', '.join(_TYPES)}")
        as_floats = f'({place!r}, "float64") for {name!r}'
        hint = f"{as_floats} reads other numbers" if kind.startswith("int") else ""
        hint = f"{as_floats} rounds whole numbers" if rounding is GraphError and not hint else hint
        hint = f"{reason}; {as_floats} takes all as floats" if reason else hint
        result[name] = Column(index, kind, name, hint=hint, rounding=None if "int" in kind else rounding)
    return result


def is_whole(field: str) -> bool:
    """Return whether a field of text is a whole number."""
    return _WHOLE.fullmatch(field.strip()) is not None


def is_number(field: str) -> bool:
    """Return whether a field of text is a number."""
    return is_float(field.strip())


_TYPES = ("int64", "int32", "float64", "float32")
_WHOLE = re.compile(r"-?[0-9]+")
