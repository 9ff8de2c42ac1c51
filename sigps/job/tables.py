"""Parameters of a job that are tables: lists stand in the job file, longer ones in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.job.updates import is_number
from sigps.model.vertex import Vertex

__all__ = ["read_tables"]


def read_tables(
    program: type[Vertex], params: Mapping[str, Any], folders: Mapping[str, Path]
) -> dict[str, Any]:
    """Return the parameters of a job, where each table that is a path is read.

    Args:
        program: The class.
        params: As the job has them.
        folders: Where the relative path of each starts.

    Raises:
        ConfigError: If a file cannot be read, or holds no numbers in one column.
    """
    tables = {field.name for field in program.declaration.params if field.is_table}
    return {
        name: _read(folders.get(name, Path()) / Path(value).expanduser(), f"params.{name}")
        if name in tables and isinstance(value, str)
        else value
        for name, value in params.items()
    }


def _read(path: Path, where: str) -> NDArray[Any]:
    if path.suffix not in (".npy", ".csv"):
        raise ConfigError(f"{where}: {path}: a table is a list, or a .npy or .csv file")
    try:
        if path.suffix == ".npy":
            found: NDArray[Any] = np.load(path, allow_pickle=False)
            return found
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: {path} cannot be read: {error}") from None
    numbers = lines[1:] if lines and not is_number(lines[0]) else lines
    for number, line in enumerate(numbers, start=1 + len(lines) - len(numbers)):
        if not is_number(line):
            raise ConfigError(
                f"{where}: {path}, line {number}: {line!r} is no number; a table has one a line"
            )
    is_whole = all(line.lstrip("+-").isdigit() for line in numbers)
    return np.array([int(line) for line in numbers] if is_whole else [float(line) for line in numbers])
