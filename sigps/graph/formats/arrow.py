"""Parquet and Arrow files: one edge a row, ends and values in typed columns.

Every rank reads its share of the row groups (Parquet) or record batches (Arrow). Ids and weights keep the file's
types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.arrow_columns import edge_chunk, explained
from sigps.graph.formats.blocks import import_optional, require_file
from sigps.graph.formats.columns import column_index, end_column, value_places
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.group import Group, own_range

__all__ = ["read_arrow", "read_parquet"]


def read_parquet(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Open a Parquet file; iterating over `chunks` reads the edges.

    Raises:
        GraphError: If the file is damaged or lacks a requested column.
    """
    require_file(path)
    import_optional("pyarrow.parquet", f"{path}: reading Parquet")
    from pyarrow import parquet

    with explained(path, "Parquet"):
        file = parquet.ParquetFile(str(path))
        known = file.schema_arrow.names
        places = _places(path, known, options)
        names = [known[place] for place in places.values()]
        own = own_range(file.num_row_groups, group)
        batches = (
            file.iter_batches(_BATCH_ROWS, row_groups=list(own), columns=names) if len(own) else iter(())
        )
    return _input("parquet", path, known, places, batches, options)


def read_arrow(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Map an Arrow IPC (Feather) file into memory; iterating over `chunks` reads the edges.

    Raises:
        GraphError: If the file is damaged or lacks a requested column.
    """
    require_file(path)
    import_optional("pyarrow", f"{path}: reading Arrow files")
    import pyarrow

    with explained(path, "Arrow IPC"):
        file = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
        known = file.schema.names
        places = _places(path, known, options)
        names = [known[place] for place in places.values()]
        own = own_range(file.num_record_batches, group)
    batches = (file.get_batch(index).select(names) for index in own)
    return _input("arrow", path, known, places, batches, options)


_BATCH_ROWS = 1 << 18


def _places(path: Path, names: Sequence[str], options: LoadOptions) -> dict[str, int]:
    """Return the positions of the ends and of every requested column."""
    if len(names) < 2:
        raise GraphError(f"{path}: an edge needs two columns, but the file has {len(names)}: {list(names)}")
    places = {
        "source": end_column("source", options.source, names, str(path)),
        "target": end_column("target", options.target, names, str(path)),
    }
    for name, (place, kind) in value_places(options, names, str(path)).items():
        if kind:
            raise GraphError(f"{path}: column {name!r} has the file's type; leave {kind!r} away")
        places[name] = column_index(place, names, f"the column for {name!r}", str(path))
    return places


def _input(
    format: str,
    path: Path,
    names: Sequence[str],
    places: dict[str, int],
    batches: Iterator[Any],
    options: LoadOptions,
) -> EdgeInput:
    directed = True if options.directed is None else options.directed
    ignored = [name for index, name in enumerate(names) if index not in places.values()]
    result = EdgeInput(format, directed)
    if ignored:
        result.notes.append(f"columns not read: {', '.join(ignored)} (weights= and columns= read them)")
    chosen = {name: names[place] for name, place in places.items()}
    result.chunks = _chunks(path, batches, chosen, options)
    return result


def _chunks(
    path: Path, batches: Iterator[Any], names: dict[str, str], options: LoadOptions
) -> Iterator[EdgeChunk]:
    with explained(path, "a table"):
        for batch in batches:
            batch.validate(full=True)  # offsets of a damaged file would lead out of its buffers
            yield edge_chunk(batch, names, options, str(path))
