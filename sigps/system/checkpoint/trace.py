"""The history of traced vertices as Parquet: one row a vertex and superstep, with its states and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.whole_files import write_whole

__all__ = ["check_writable", "write_trace"]


def check_writable() -> None:
    """Check that Parquet can be written.

    Raises:
        ConfigError: If pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"trace= with a checkpoint writes Parquet, which needs pyarrow ({error}): pip install 'sigps[io]'"
        ) from None


def write_trace(path: Path, traced: list[dict[str, Any]], graph: Graph) -> None:
    """Write what an interpreter recorded on this rank; replaces the file. Collective where ids are strings.

    Raises:
        OSError: If the file cannot be written.
    """
    import pyarrow
    import pyarrow.parquet

    ids = np.array([record["id"] for record in traced], dtype=np.int64)
    if graph.ids.kind == "strings":
        ids = graph.ids.to_oids(ids)
    rows = [_row(record) | {"id": oid} for record, oid in zip(traced, ids.tolist(), strict=True)]
    if rows:
        table = pyarrow.Table.from_pylist(rows)
        write_whole(path, lambda file: pyarrow.parquet.write_table(table, file))


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as columns: `before.NAME` and `after.NAME` for each field."""
    row = {"superstep": record["superstep"], "id": record["id"]}
    row |= {f"before.{name}": value for name, value in record["before"].items()}
    row |= {f"after.{name}": value for name, value in record["after"].items()}
    row["messages"] = [_message(m) for m in record["messages"]]
    row["sent"] = [_message(m) for m in record["sent"]]
    row["halted"] = bool(record["halted"])
    return row


def _message(message: Any) -> Any:
    return message._asdict() if hasattr(message, "_asdict") else message
