"""Tables of vertices: one vertex a row, its id in one column, values of it in others. Of files, and in memory.

Parquet, Arrow, and text with delimiters. Every rank reads its share of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.arrow_columns import explained, holds_numbers, vertex_rows
from sigps.graph.formats.blocks import COMMENTS, TextFile, first_rows, import_optional, require_file
from sigps.graph.formats.columns import column_index, is_number, value_columns
from sigps.graph.formats.edge_input import ColumnRef, LoadOptions, own_ids
from sigps.graph.formats.edge_list import find_delimiter
from sigps.graph.formats.numerals import whole_number
from sigps.graph.formats.structures import batches_of, plain
from sigps.graph.formats.text_table import WHITESPACE, Column, Layout, read_rows, split_rows
from sigps.graph.memory import require_memory
from sigps.group import Group, own_range

__all__ = ["VertexRows", "from_arrow", "id_range", "is_table", "read_vertices"]

VertexRows = tuple[NDArray[Any], dict[str, NDArray[Any]]]
"""This rank's share of the ids, and of each vertex column the values in their order."""


def read_vertices(
    path: str | Path,
    id: int | str | None,
    columns: Mapping[str, ColumnRef] | None,
    options: LoadOptions,
    group: Group,
) -> VertexRows:
    """Read this rank's rows of a table of vertices.

    Args:
        path: A Parquet or Arrow file by its suffix, else text; or whole numbers, `"1..1000"`, without vertex columns.
        id: The column of ids, by name or number from 0; None for one named "id", else the first.
        columns: The vertex columns, by name; None for all others that hold numbers, by their own names.
        options: Of reading text, and the kind of ids.
        group: The ranks that share the file.

    Raises:
        GraphError: If the file is missing or damaged, or a column is missing or holds no numbers.
    """
    if (ids := id_range(path)) is not None:
        if (id, columns) != (None, None):
            raise GraphError(
                f"vertices={path!r} has no columns: vertex_id= and vertex_columns= are of a file"
            )
        where = f"vertices={path!r}"
        require_memory(_LISTED_BYTES * len(ids), f"{where}: {len(ids):,} vertices", group)
        return own_ids(len(ids), group, where, base=ids.start), {}
    path = Path(path)
    require_file(path)
    if path.suffix.lower() not in (".parquet", ".arrow", ".feather"):
        return _from_text(path, id, columns, options, group)
    import_optional("pyarrow.parquet", f"{path}: reading Parquet and Arrow files")
    import pyarrow
    from pyarrow import parquet

    with explained(path, "a table"):
        if path.suffix.lower() == ".parquet":
            file = parquet.ParquetFile(str(path))
            own, schema = own_range(file.num_row_groups, group), file.schema_arrow
            names = _arrow_names(schema, id, columns, str(path))
            table = file.read_row_groups(list(own), columns=list(dict.fromkeys(names.values())))
        else:
            stream = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
            own, schema = own_range(stream.num_record_batches, group), stream.schema
            names = _arrow_names(schema, id, columns, str(path))
            table = pyarrow.Table.from_batches([stream.get_batch(i) for i in own], schema)
        table.validate(full=True)
        return _of_batch(table, names, options, str(path))


def id_range(text: str | Path) -> range | None:
    """Return the ids that `"first..last"` names; None of anything else, such as a path.

    Raises:
        GraphError: If the last is before the first.
    """
    found = _RANGE.fullmatch(str(text))
    first, last = (whole_number(found[1]), whole_number(found[2])) if found else (None, None)
    if first is None or last is None:
        return None
    if last < first:
        raise GraphError(f"vertices={text!r}: the last id is before the first")
    return range(first, last + 1)


def is_table(data: Any) -> bool:
    """Return whether something is a table in memory, and no array of ids."""
    has_columns = hasattr(data, "columns") or hasattr(data, "column_names") or hasattr(data, "schema")
    return hasattr(data, "__arrow_c_stream__") and has_columns


def from_arrow(
    data: Any, id: int | str | None, columns: Mapping[str, Any] | None, local: bool, group: Group
) -> VertexRows:
    """Return this rank's rows of a table in memory; with `local` all, since every rank has other ones."""
    import_optional("pyarrow", "from_arrow")
    table = batches_of(data).read_all()
    names = _arrow_names(table.schema, id, columns, "vertices=")
    if not local:
        own = own_range(table.num_rows, group)
        table = table.slice(own.start, len(own))
    return _of_batch(table, names, LoadOptions(), "vertices=")


_LISTED_BYTES = 64  # measured: the peak of loading a vertex that is listed, and looking it up
_ID_NAMES = ("id", "vertex", "vertex_id", "node")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def _id_column(place: int | str | None, names: Sequence[str], where: str) -> int:
    if place is None:
        lowered = [name.lower() for name in names]
        place = next((lowered.index(name) for name in _ID_NAMES if name in lowered), 0)
    return column_index(place, names, "the column of ids (vertex_id)", where)


def _arrow_names(
    schema: Any, id: int | str | None, columns: Mapping[str, Any] | None, where: str
) -> dict[str, str]:
    """Return the names of the columns to read: of ids under the empty name, of vertex columns under theirs."""
    names = schema.names
    at = _id_column(id, names, where)
    found = {"": names[at]}
    if columns is None:
        kinds = enumerate(zip(names, schema.types, strict=True))
        return found | {name: name for i, (name, kind) in kinds if i != at and holds_numbers(kind)}
    for name, place in columns.items():
        if not isinstance(place, (int, str)) or isinstance(place, bool):
            raise GraphError(f"{where}: the column for {name!r} is {place!r}; give its name or its number")
        found[name] = names[column_index(place, names, f"the column for {name!r}", where)]
    return found


def _of_batch(table: Any, names: dict[str, str], options: LoadOptions, where: str) -> VertexRows:
    import pyarrow

    used = list(dict.fromkeys(names.values()))
    arrays = [plain(table.column(name).combine_chunks()) for name in used]
    arrays = [_one_chunk(array) for array in arrays]
    batch = pyarrow.RecordBatch.from_arrays(arrays, names=used)
    values = {name: column for name, column in names.items() if name}
    return vertex_rows(batch, names[""], values, options, where)


def _one_chunk(array: Any) -> Any:
    """Return a combined column as an array; of some versions of Arrow it is a column of one chunk."""
    return array.chunk(0) if hasattr(array, "num_chunks") else array


def _from_text(
    path: Path,
    id: int | str | None,
    columns: Mapping[str, ColumnRef] | None,
    options: LoadOptions,
    group: Group,
) -> VertexRows:
    source = TextFile(path)
    comments = COMMENTS if options.comment is None else (options.comment,)
    sample = first_rows(source, comments)
    lines = [line for _, line in sample.lines]
    delimiter = find_delimiter(lines, LoadOptions(ids=options.ids), source.inner_suffix == ".tsv")
    if delimiter == WHITESPACE and options.ids == "string":  # a column of texts has no mark between fields
        delimiter = {".csv": ",", ".tsv": "\t"}.get(source.inner_suffix, WHITESPACE)
    rows = split_rows(source, sample.lines, delimiter)
    is_named = len(rows) > 1 and not any(map(is_number, rows[0])) and any(map(is_number, rows[1]))
    has_header = is_named or (len(rows[0]) == 1 and rows[0][0].lower() in _ID_NAMES)
    if has_header and len(rows) == 1:
        raise GraphError(f"{path}: the file has no rows but the header {rows[0][0]!r}")
    names = [name.strip() for name in rows[0]] if has_header else [""] * len(rows[0])
    start = sample.lines[1 if has_header else 0][0]
    rows = rows[1:] if has_header else rows
    at = _id_column(id, names, str(path))
    if columns is None:
        columns = {
            name: i
            for i, name in enumerate(names)
            if name and i != at and all(is_number(row[i]) for row in rows if i < len(row))
        }
        if not columns and len(names) > 1:
            raise GraphError(
                f"{path}: no column is named in a header and holds numbers; name the vertex columns: "
                "vertex_columns={'age': 1}, a column by its name or its number from 0; {} reads the ids alone"
            )
    kind = "string" if options.ids == "string" else "int64"
    hint = "" if kind == "string" else 'ids="string" takes any text as id'
    values = value_columns(LoadOptions(weights=False, columns=columns), names, rows, str(path))
    layout = Layout({"": Column(at, kind, "vertex id", hint=hint), **values}, len(names), delimiter, comments)
    return _joined(list(read_rows(source, layout, group, start=start)), layout)


def _joined(blocks: list[Any], layout: Layout) -> VertexRows:
    found = {}
    for name, column in layout.columns.items():
        empty = np.empty(0, dtype=np.str_ if column.type == "string" else column.type)
        found[name] = np.concatenate([empty, *(np.asarray(block.columns[name]) for block in blocks)])
    return found.pop(""), found
