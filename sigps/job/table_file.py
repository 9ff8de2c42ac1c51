"""Tables on disk, Parquet or CSV: one file, or a folder in which each rank writes its part (`parts.py`).

What is written replaces an older file or folder when it is whole, and not before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigps.errors import ConfigError, OutputError
from sigps.extras import needs
from sigps.group import Group, together
from sigps.job.parts import MANIFEST, holds_parts_only, read_parts, write_parts
from sigps.whole_files import write_whole

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FORMATS", "check_output", "read_result", "write_table"]

FORMATS = (".parquet", ".csv")


def write_table(table: pyarrow.Table, path: Path, suffix: str, group: Group) -> None:
    """Write a table to a file, or on several ranks each rank's part of it to a folder. Collective.

    Args:
        table: The table.
        path: The file, or on several ranks the folder.
        suffix: One of `FORMATS`.
        group: The ranks that each write their part.

    Raises:
        ConfigError: If the path is a folder of something else than a result.
        OutputError: If it cannot be written there; what was there is left as it was.
    """
    together(lambda: _check_replaced(path, group.size), group)
    write = _parquet(table) if suffix == ".parquet" else _csv(table)
    if group.size > 1:
        with group.status.during("writing the result"):
            write_parts(path, suffix, group, table.num_rows, write)
        return
    try:
        write_whole(path, write)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}. Make room there, or choose another path"
        ) from None


def read_result(path: str | Path) -> pyarrow.Table:
    """Return the table that a run wrote to a path, of all ranks.

    Of a folder, which several ranks wrote, parts are compared with the checksums of its manifest first.

    Raises:
        ConfigError: If the path names no format of results.
        OutputError: If there is none, or it is damaged or not whole.
    """
    path = Path(path)
    _check_suffix(path)
    if not path.exists():
        raise OutputError(
            f"{path}: there is no such file, nor a folder of parts; name the output.path of a job"
        )
    with needs("pyarrow"):
        import pyarrow.csv
        import pyarrow.parquet

    read = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.parquet.read_table
    try:
        return pyarrow.concat_tables([read(part) for part in (read_parts(path) if path.is_dir() else [path])])
    except (OSError, pyarrow.ArrowException) as error:
        raise OutputError(f"{path} cannot be read: {error}") from None


def _parquet(table: pyarrow.Table) -> Callable[[Any], None]:
    with needs("pyarrow"):
        import pyarrow.parquet

    return lambda file: pyarrow.parquet.write_table(table, file)


def _csv(table: pyarrow.Table) -> Callable[[Any], None]:
    with needs("pyarrow"):
        import pyarrow.csv

    options = pyarrow.csv.WriteOptions(include_header=False)
    table = _with_a_column_for_each_number(table)

    def write(file: Any) -> None:
        file.write((",".join(table.column_names) + "\n").encode())
        pyarrow.csv.write_csv(table, file, options)

    return write


def _with_a_column_for_each_number(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table in which a column of vectors `f` is `f.0`, `f.1`, ...: CSV has no lists."""
    import pyarrow

    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pyarrow.types.is_fixed_size_list(column.type):
            columns[name] = column
            continue
        numbers = column.combine_chunks().flatten()
        width = column.type.list_size
        columns |= {f"{name}.{i}": numbers[i::width] for i in range(width)}
    return pyarrow.table(columns)


def check_output(path: str | Path, *, group_size: int = 1) -> None:
    """Check that a result can be written to a path; leaves nothing behind.

    Raises:
        ConfigError: If the format is unknown, the folder is missing or not writable, or the path is a folder of
            something else than a result.
    """
    path = Path(path)
    _check_suffix(path)
    with needs("pyarrow"):
        import pyarrow  # noqa: F401
    if not path.parent.is_dir():
        raise ConfigError(f"output {path}: there is no folder {path.parent}: make it, or choose another path")
    _check_replaced(path, group_size)
    probe = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"output {path}: cannot write in the folder {path.parent}: {error.strerror}. Choose another path"
        ) from None


def _check_replaced(path: Path, group_size: int) -> None:
    """Check that what is at a path may be replaced: a file, or a folder of parts; by one rank, one that is finished."""
    if path.is_dir() and not (holds_parts_only(path) and (group_size > 1 or (path / MANIFEST).is_file())):
        raise ConfigError(
            f"output {path}: is a folder, and no finished result, so it is not replaced: remove it, or choose another "
            "path"
        )


def _check_suffix(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise ConfigError(
            f"output {path}: the name ends in {path.suffix!r}; a result is written as {' or '.join(FORMATS)}"
        )
