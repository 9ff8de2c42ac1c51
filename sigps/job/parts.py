"""A table of several ranks on disk: a folder with one part a rank, and a manifest that says it is whole.

ranks.parquet/
  part-00000.parquet      the rows of rank 0
  part-00001.parquet
  _SUCCESS                JSON: the run, its ranks, the rows, and of each part rows, bytes and CRC-32
"""

from __future__ import annotations

import datetime
import json
import os
import re
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigps.errors import OutputError
from sigps.group import Group
from sigps.whole_files import write_folder

__all__ = ["MANIFEST", "holds_parts_only", "read_parts", "write_parts"]

MANIFEST = "_SUCCESS"


def write_parts(path: Path, suffix: str, group: Group, num_rows: int, write: Callable[[Any], Any]) -> None:
    """Write this rank's part; the folder replaces an older one when all parts are there. Collective.

    Args:
        path: The folder, which all ranks see under this name.
        suffix: Of the parts.
        group: The ranks.
        num_rows: Rows of this rank's part.
        write: Writes the part to an open file.

    Raises:
        OutputError: If it cannot be written on some rank; what was there is left as it was.
    """

    def write_part(folder: Path) -> dict[str, Any]:
        part = folder / f"part-{group.rank:05}{suffix}"
        with open(part, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        return {"name": part.name, "rows": num_rows, "bytes": part.stat().st_size, "crc32": _crc32(part)}

    def finish(folder: Path, parts: list[dict[str, Any]]) -> None:
        manifest = {
            "run": _new_run(),
            "ranks": group.size,
            "rows": sum(p["rows"] for p in parts),
            "parts": parts,
        }
        with open(folder / MANIFEST, "x", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    write_folder(
        path,
        group,
        write=write_part,
        finish=finish,
        problem=lambda error: OutputError(
            f"{path} cannot be written: {error.strerror or error}. Make room there, or choose another path"
        ),
    )


def read_parts(path: Path) -> list[Path]:
    """Return the parts of a folder, by rank, after comparing them with its manifest. Reads every byte.

    Raises:
        OutputError: If there is no manifest, or a part is missing or is not the one that was written.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        parts = [(path / str(p["name"]), int(p["bytes"]), int(p["crc32"])) for p in manifest["parts"]]
    except FileNotFoundError:
        raise OutputError(
            f"{path} has no {MANIFEST}: the run that wrote it did not finish, or it is no result. Run the job again"
        ) from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise OutputError(f"{path / MANIFEST} is damaged: {error}. Run the job again") from None
    for part, num_bytes, crc in parts:
        if not _PART.fullmatch(part.name) or part.parent != path:
            raise OutputError(f"{path / MANIFEST} is damaged: {part} is no part of it. Run the job again")
        try:
            found = part.stat().st_size, _crc32(part)
        except OSError as error:
            raise OutputError(f"{part} cannot be read: {error.strerror}. Run the job again") from None
        if found != (num_bytes, crc):
            raise OutputError(f"{part} is not as it was written: copy the folder again, or run the job again")
    return [part for part, _, _ in parts]


def holds_parts_only(folder: Path) -> bool:
    """Return whether a folder holds nothing but what results are made of, so that a result may replace it."""
    names = [entry.name for entry in folder.iterdir()]
    return all(name == MANIFEST or _PART.fullmatch(name) or _OF_A_PART.fullmatch(name) for name in names)


_PART = re.compile(r"part-\d{5,}\.(csv|parquet)")
_OF_A_PART = re.compile(r"\.part-\d{5,}\.(csv|parquet)\.[0-9a-f]+\.tmp")
_CHUNK_BYTES = 1 << 22


def _new_run() -> str:
    """Return the name of a run: when it wrote its result, and four random digits."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now.strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(2)}"


def _crc32(path: Path) -> int:
    crc = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            crc = zlib.crc32(chunk, crc)
    return crc
