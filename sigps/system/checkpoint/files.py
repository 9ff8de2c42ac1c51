"""The files of a state log. Each is written under a temporary name, synced and renamed; the manifest comes last.

    log/
      20261121T190102Z-3f9a-00000040/     one log: a run's start, four random digits, the superstep that comes next
        part-00000.npz                    one rank's arrays
        manifest.msgpack                  what the log holds, and size and checksums of every part

A folder without a manifest is a log that was begun and not finished; no run goes on from it.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from sigps.engine.snapshot import InFlight
from sigps.errors import StateLogError
from sigps.whole_files import sync, write_whole

__all__ = [
    "FORMAT_VERSION",
    "Manifest",
    "begin_log",
    "described",
    "find_logs",
    "find_unfinished",
    "is_finished",
    "part_name",
    "read_manifest",
    "read_part",
    "reason_of",
    "remove_log",
    "remove_old",
    "run_of",
    "superstep_of",
    "verify_part",
    "write_part",
]

FORMAT_VERSION = 1
_MANIFEST = "manifest.msgpack"
_MAGIC = b"sigps state log\n"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}-\d{8,}")
_DAMAGED = (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged archive raises: NotImplementedError is a RuntimeError."""


@dataclass(frozen=True)
class Manifest:
    """What a log holds.

    Attributes:
        run: The name of the run that wrote it: when it started, and four random digits.
        superstep: The superstep that comes next.
        program_key, graph_key: As in `Identity`.
        num_edges: Directed edges of the graph as stored.
        id_kind: As in `Ids.kind`; for `"table"` and `"strings"` parts hold the vertices' ids.
        id_base: The smallest id, where they are consecutive.
        device: The device that wrote it: `"python"`, `"cpu"` or `"cuda"`.
        in_flight: What the parts hold of messages, as in `engine.snapshot`.
        states: The fields' names.
        optional: Of these, the fields of `VertexId | None`, in which `NO_VERTEX` stands for None.
        dtypes: The type of each array of a part.
        stats: One row for each superstep so far: the values of a `SuperstepStats`.
        versions: Of sigps, NumPy and Python.
        saved_at: Seconds since 1970.
        parts: For each rank's file its bytes and the CRC-32 of each array, [size].
    """

    run: str
    superstep: int
    program: str
    program_key: str
    graph_key: str
    num_vertices: int
    num_edges: int
    id_kind: str
    id_base: int
    device: str
    in_flight: InFlight
    states: list[str]
    aggregators: dict[str, Any]
    dtypes: dict[str, str]
    stats: list[list[Any]]
    versions: dict[str, str]
    saved_at: float
    parts: list[dict[str, Any]] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The folder's name; names ascend from run to run and from superstep to superstep."""
        return f"{self.run}-{self.superstep:08}"

    @property
    def num_bytes(self) -> int:
        return sum(int(part["bytes"]) for part in self.parts)

    def write(self, folder: Path) -> None:
        """Finish the log in `folder`."""
        body = msgpack.packb(asdict(self))
        content = _MAGIC + msgpack.packb([FORMAT_VERSION, zlib.crc32(body), body])
        write_whole(folder / _MANIFEST, lambda file: file.write(content))
        (folder / _marker(self)).unlink(missing_ok=True)
        sync(folder.parent)


def part_name(rank: int) -> str:
    """Return the name of a rank's file in a log."""
    return f"part-{rank:05}.npz"


def write_part(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one rank's arrays, and wait until they are on the disk.

    Raises:
        OSError: If the disk is full, or the folder is gone.
    """
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def described(path: Path) -> dict[str, Any]:
    """Return a part's size and its arrays' checksums, from the archive's directory. Reads no array."""
    with zipfile.ZipFile(path) as file:
        crcs = {info.filename: info.CRC for info in file.infolist()}
    return {"bytes": path.stat().st_size, "crcs": crcs}


def find_logs(folder: Path) -> list[Path]:
    """Return the finished logs in a folder, the newest first; none where there is no folder."""
    return sorted((path for path in _named_as_logs(folder) if is_finished(path)), reverse=True)


def find_unfinished(folder: Path) -> list[Path]:
    """Return the logs that were begun and not finished, the oldest first; a run may be writing the newest."""
    return sorted(path for path in _named_as_logs(folder) if not is_finished(path))


def is_finished(log: Path) -> bool:
    """Return whether a log has its manifest, and so all its parts."""
    return (log / _MANIFEST).is_file()


def _named_as_logs(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_dir()]


def run_of(log: Path) -> str:
    """Return the run that wrote a log, by its name."""
    return log.name.rpartition("-")[0]


def superstep_of(log: Path) -> int:
    """Return the superstep that comes next after a log, by its name."""
    return int(log.name.rpartition("-")[2])


def begin_log(folder: Path, manifest: Manifest) -> None:
    """Make the folder of a log, marked as that of a job until it is finished.

    Raises:
        OSError: If it cannot be made.
    """
    folder.mkdir(parents=True)
    (folder / _marker(manifest)).touch()


def _marker(manifest: Manifest) -> str:
    return f".{manifest.program_key}-{manifest.graph_key}.tmp"


def remove_log(folder: Path) -> None:
    """Remove a log, its manifest first, so that it is never taken for a finished one. Foreign files in it stay."""
    with contextlib.suppress(OSError):
        (folder / _MANIFEST).unlink(missing_ok=True)
        for path in (*folder.glob("part-*.npz"), *folder.glob(".*.tmp")):
            path.unlink(missing_ok=True)
        folder.rmdir()


def remove_old(newest: Path, manifest: Manifest, keep: int) -> None:
    """Remove the logs that a newly finished one replaces.

    These are logs of the same job beyond `keep` whose superstep is not later, so that a run which begins anew removes
    no log of an older one that got further; and those that earlier runs of this job began and did not finish.

    Args:
        newest: The folder of the newly finished log.
        manifest: Its manifest.
        keep: How many logs to keep, this one among them.
    """
    same_job = []
    for path in find_logs(newest.parent):
        with contextlib.suppress(StateLogError):
            other = read_manifest(path)
            is_same = (other.program_key, other.graph_key) == (manifest.program_key, manifest.graph_key)
            if is_same and other.superstep <= manifest.superstep:
                same_job.append(path)
    for path in same_job[keep:]:
        remove_log(path)
    for path in find_unfinished(newest.parent):
        if run_of(path) < manifest.run and (path / _marker(manifest)).exists():
            remove_log(path)


def read_manifest(folder: Path) -> Manifest:
    """Read a log's manifest.

    Raises:
        StateLogError: If the manifest is missing, damaged, or of another version.
    """
    path = folder / _MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise StateLogError(f"{folder} is no state log: {error.strerror or error}") from None
    try:
        if not raw.startswith(_MAGIC):
            raise ValueError(f"it begins with {raw[:16]!r}")
        version, crc, body = msgpack.unpackb(raw[len(_MAGIC) :])
        if version != FORMAT_VERSION:
            raise StateLogError(
                f"{folder} has format version {version}, and this sigps reads version {FORMAT_VERSION}"
            )
        if zlib.crc32(body) != crc:
            raise ValueError("it does not match its checksum")
        values = msgpack.unpackb(body)
        return Manifest(**{f.name: values[f.name] for f in fields(Manifest) if f.name in values})
    except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
        raise StateLogError(f"{path} is damaged: {error}") from None


def verify_part(folder: Path, manifest: Manifest, rank: int) -> None:
    """Read one part whole, and compare it with the manifest.

    Raises:
        StateLogError: If it is missing, cut short, changed, or of another log.
    """
    path, expected = folder / part_name(rank), manifest.parts[rank]
    try:
        num_bytes = path.stat().st_size
        if num_bytes != expected["bytes"]:
            raise StateLogError(f"{path} has {num_bytes:,} bytes, and {expected['bytes']:,} were written")
        with zipfile.ZipFile(path) as file:
            crcs = {info.filename: info.CRC for info in file.infolist()}
            wrong = file.testzip()
    except _DAMAGED as error:
        raise StateLogError(f"{path} is damaged: {reason_of(error)}") from None
    if wrong is not None:
        raise StateLogError(f"{path} is damaged: {wrong} does not match its checksum")
    if crcs != expected["crcs"]:
        raise StateLogError(f"{path} belongs to another log: its checksums are not those of the manifest")


_parsing = threading.Lock()  # CPython 3.11 may fail where threads parse at the same time: gh-106905


def read_part(folder: Path, rank: int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return some of one rank's arrays; each is compared with its checksum first.

    Raises:
        StateLogError: If the file cannot be read.
    """
    path = folder / part_name(rank)
    try:
        with zipfile.ZipFile(path) as file:
            raw = {name: io.BytesIO(file.read(f"{name}.npy")) for name in names}
        with _parsing:
            return {name: np.lib.format.read_array(data, allow_pickle=False) for name, data in raw.items()}
    except _DAMAGED as error:
        raise StateLogError(f"{path} cannot be read: {reason_of(error)}") from None


def reason_of(error: BaseException) -> str:
    """Return an error's reason without the path that some messages repeat."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
