"""Tables on disk, Parquet or CSV: one file, or a folder in which each rank writes its part.

Writing goes to a temporary name that is renamed when complete, so an older file is never half replaced.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigps.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FORMATS", "check_output", "needs", "replace_file", "write_table"]

FORMATS = (".parquet", ".csv")


def write_table(table: pyarrow.Table, path: Path, suffix: str, *, group_rank: int, group_size: int) -> None:
    """Write a table, or on several ranks each rank's part of it.

    Args:
        table: The table.
        path: The file, or on several ranks the folder.
        suffix: One of `FORMATS`.
        group_rank: This rank.
        group_size: Ranks that each write their part; where it is 1, rank 0 alone writes.

    Raises:
        ConfigError: If it cannot be written there; an older file is left as it was.
    """
    write = _parquet(table) if suffix == ".parquet" else _csv(table)
    if group_size == 1:
        if group_rank == 0:
            replace_file(path, write)
        return
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {path} for the parts: {error.strerror}") from None
    replace_file(path / f"part-{group_rank:05}{suffix}", write)
    if group_rank == 0:
        for part in path.glob(f"part-*{suffix}"):  # an earlier run had more ranks
            if int(part.stem.removeprefix("part-")) >= group_size:
                part.unlink()


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
        ConfigError: If the format is unknown, the folder is missing or not writable, or the path is a file
            where a folder is needed (or a folder where a file is).
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ConfigError(
            f"output {path}: the name ends in {path.suffix!r}; a result is written as {' or '.join(FORMATS)}"
        )
    with needs("pyarrow"):
        import pyarrow  # noqa: F401
    if not path.parent.is_dir():
        raise ConfigError(f"output {path}: there is no folder {path.parent}: make it, or choose another path")
    if group_size == 1 and path.is_dir():
        raise ConfigError(
            f"output {path}: is a folder, and one rank writes a file: remove it, or choose another path"
        )
    if group_size > 1 and path.is_file():
        raise ConfigError(
            f"output {path}: is a file, and {group_size} ranks write a folder: "
            "remove it, or choose another path"
        )
    folder = path if path.is_dir() else path.parent
    probe = folder / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"output {path}: cannot write in the folder {folder}: {error.strerror}") from None


def replace_file(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file under a temporary name beside it, then rename it over the old one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def needs(package: str) -> Iterator[None]:
    """Turn a missing package into an error that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"this needs {package}, which is not installed ({error}): pip install 'sigps[io]'"
        ) from None
