"""The files of a state log. Each is written under a temporary name, synced and renamed; the manifest comes last.

    log/
      20261121T190102Z-3f9a-00000040/     one log: a run's start, four random digits, the superstep that comes next
        part-00000.npz                    one rank's arrays
        manifest.msgpack                  what the log holds, and size and checksums of every part

A folder without a manifest is a log that was begun and not finished; no run goes on from it. What is read is compared
with the manifest each time, and numbers of vertices with how many there are: a log from elsewhere stays within bounds.
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
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgpack
import numpy as np
from numpy.typing import NDArray

from sigps.engine.snapshot import InFlight
from sigps.errors import StateLogError
from sigps.kernels.cpu.arguments import RETIRED
from sigps.whole_files import sync, write_whole

__all__ = [
    "FORMAT_VERSION",
    "Manifest",
    "begin_log",
    "described",
    "dtype_text",
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

FORMAT_VERSION = 2
_MANIFEST = "manifest.msgpack"
_MAGIC = b"sigps state log\n"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}-\d{8,}")
_DTYPE = re.compile(r"(\([\d, ]+\))?[<|][biufU][1-9]\d{0,8}")
_DAMAGED = (
    OSError, EOFError, KeyError, ValueError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
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
        in_flight: What the parts hold of messages, as in `engine.snapshot`; the array of their ends has this name, and
            its values are `records.0`, `records.1`, ... then.
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
    def values(self) -> list[str]:
        """The names of the arrays of what is in flight, without its ends."""
        count = sum(name.startswith(f"{self.in_flight}.") for name in self.dtypes)
        return [f"{self.in_flight}.{i}" for i in range(count)]

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


def dtype_text(array: NDArray[Any]) -> str:
    """Return the type of an array's rows, as `np.dtype` takes it: `<f8`, or `(16,)<f8` of vectors."""
    return f"{array.shape[1:] if array.ndim > 1 else ''}{array.dtype.str}"


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
    return _mark(manifest.program_key, manifest.graph_key)


def _mark(program_key: str, graph_key: str) -> str:
    return f".{program_key}-{graph_key}.tmp"


def remove_marks(folder: Path, program_key: str, graph_key: str) -> None:
    """Take a job's mark off its finished logs: a run leaves one that dies between finishing a log and doing so."""
    for log in find_logs(folder):
        with contextlib.suppress(OSError):
            (log / _mark(program_key, graph_key)).unlink(missing_ok=True)


def remove_log(folder: Path) -> None:
    """Remove a log, its manifest first, so that it is never taken for a finished one.

    Foreign files in it stay, and so does all that a link leads to.
    """
    if folder.is_symlink():
        return
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
        StateLogError: If the manifest is missing, damaged, of another version, or of another folder.
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
        manifest = Manifest(**{f.name: values[f.name] for f in fields(Manifest)})
        _check(manifest)
    except (ValueError, TypeError, KeyError, AttributeError, msgpack.UnpackException) as error:
        raise StateLogError(f"{path} is damaged: {error}") from None
    if manifest.name != folder.name:
        raise StateLogError(
            f"{folder} was renamed or copied: it is the log {manifest.name}. Give it that name again"
        )
    return manifest


def _check(manifest: Manifest) -> None:
    """Raise ValueError where a manifest says what no log does."""
    for name, hint in get_type_hints(Manifest).items():
        value, kind = getattr(manifest, name), get_origin(hint) or hint
        if value not in get_args(hint) if kind is Literal else type(value) is not kind:
            raise ValueError(f"{name} is {value!r}")
    if min(manifest.superstep, manifest.num_vertices, manifest.num_edges) < 0:
        raise ValueError("counts are negative")
    if not set(manifest.optional) <= set(manifest.states):
        raise ValueError("fields may be None that it has not")
    if manifest.dtypes.get("gids") != "<i8" or manifest.dtypes.get(manifest.in_flight) != "<i8":
        raise ValueError("vertices are not named by numbers")
    wrong = [kind for kind in manifest.dtypes.values() if not _DTYPE.fullmatch(kind)]
    if wrong:
        raise ValueError(f"there is no type {wrong[0]!r}")
    for part in manifest.parts:
        if type(part["bytes"]) is not int or part["crcs"].keys() != {
            f"{name}.npy" for name in manifest.dtypes
        }:
            raise ValueError("a part is described wrongly")


def verify_part(folder: Path, manifest: Manifest, rank: int) -> None:
    """Read one part whole, and compare it with the manifest.

    Raises:
        StateLogError: If it is missing, cut short, changed, or of another log.
    """
    path, expected = folder / part_name(rank), manifest.parts[rank]["bytes"]
    try:
        num_bytes = path.stat().st_size
    except OSError as error:
        raise StateLogError(f"{path} is damaged: {reason_of(error)}") from None
    if num_bytes != expected:
        raise StateLogError(f"{path} has {num_bytes:,} bytes, and {expected:,} were written")
    read_part(folder, manifest, rank, list(manifest.dtypes))


_parsing = threading.Lock()  # CPython 3.11 may fail where threads parse at the same time: gh-106905


def read_part(folder: Path, manifest: Manifest, rank: int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return some of one rank's arrays; each is compared with its checksum first, and vertices are numbers of vertices.

    Raises:
        StateLogError: If the file cannot be read, or is not as the manifest says.
    """
    path = folder / part_name(rank)
    try:
        with zipfile.ZipFile(path) as file:
            raw = {name: io.BytesIO(_member(file, f"{name}.npy", manifest.parts[rank])) for name in names}
        with _parsing:
            arrays = {name: np.lib.format.read_array(data, allow_pickle=False) for name, data in raw.items()}
    except _DAMAGED as error:
        raise StateLogError(f"{path} is damaged: {reason_of(error)}") from None
    problem = _problem(arrays, manifest)
    if problem:
        raise StateLogError(f"{path} is damaged: {problem}")
    return arrays


def _member(file: zipfile.ZipFile, name: str, part: Mapping[str, Any]) -> bytes:
    info = file.getinfo(name)
    if part["crcs"][name] != info.CRC:
        raise ValueError(f"it belongs to another log: the checksum of {name} is not that of the manifest")
    if info.file_size > part["bytes"]:
        raise ValueError(f"{name} is compressed, which no log is")
    return file.read(info)


def _problem(arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> str:
    """Return what is wrong with arrays of a part, or an empty text."""
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if array.ndim == 0 or dtype_text(array) != manifest.dtypes[name]:
            return f"{name} has the type {dtype_text(array)}, and the manifest says {manifest.dtypes[name]}"
        if sizes.setdefault(_what(name, manifest), len(array)) != len(array):
            return f"{name} has {len(array):,} values, and other arrays of the same have not"
        most = {"gids": manifest.num_vertices, "sources": manifest.num_vertices, "status": RETIRED + 1}.get(
            name, manifest.num_vertices if name == manifest.in_flight else None
        )
        if most is not None and len(array) and not 0 <= int(array.min()) <= int(array.max()) < most:
            return f"{name} has {int(array.min())} to {int(array.max())}, and 0 to {most - 1} are possible"
    return ""


def _what(name: str, manifest: Manifest) -> str:
    """Return what an array has one value of: a vertex, an edge, or what is in flight."""
    if name == "sources" or name.startswith("edge."):
        return "edge"
    return "in flight" if name == manifest.in_flight or name in manifest.values else "vertex"


def reason_of(error: BaseException) -> str:
    """Return an error's reason without the path that some messages repeat."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
