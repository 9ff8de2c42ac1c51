"""What crosses the socket of a server: requests and replies as frames, results as Arrow tables in shared memory.

A frame is a length of four bytes, most significant first, and so many bytes of one MessagePack mapping. A result is not
in a frame: the server writes it into memory that has no name, seals it against changes, and passes its descriptor.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict
from typing import Any, cast

import msgpack
import numpy as np

import sigps.errors
from sigps.engine.stats import SuperstepStats
from sigps.errors import ConfigError, ServerError, SigpsError
from sigps.extras import needs
from sigps.job.result import EdgeFields, Result
from sigps.model.fields import NO_VERTEX

__all__ = [
    "LARGEST_FRAME",
    "FrameError",
    "NoServerError",
    "connected",
    "default_socket",
    "error_of",
    "peer_uid",
    "read_frame",
    "read_tables",
    "reply_of",
    "result_of",
    "send_frame",
    "send_tables",
    "tables_of",
]

LARGEST_FRAME = 1 << 20
PATIENCE_SECONDS = 10.0  # for the rest of a frame that has begun, and for a peer that reads


class FrameError(Exception):
    """What came is no frame."""


class NoServerError(ConfigError):
    """Nobody listens at a socket."""


def connected(path: str) -> socket.socket:
    """Return a socket that is connected to a server of this user.

    Raises:
        NoServerError: If none listens there.
        ConfigError: If it is another user's.
    """
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.connect(path)
    except OSError as error:
        found.close()
        why = "the path is too long for a socket" if error.errno is None else error.strerror
        raise NoServerError(
            f"no server of jobs at {path} ({why}): start one with sigps serve pool.yaml, or name its socket"
        ) from None
    if (owner := peer_uid(found)) != os.getuid():
        found.close()
        raise ConfigError(f"the server at {path} is of user {owner}, not yours: give another socket")
    return found


def default_socket() -> str:
    """Return where a server of this user listens that was told nothing else."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return f"{folder}/sigps.sock" if os.path.isdir(folder) else f"/tmp/sigps-{os.getuid()}.sock"


def peer_uid(connection: socket.socket) -> int:
    """Return the number of the user at the other end, from the system."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def send_frame(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send one message.

    Raises:
        FrameError: If it is too large, or holds what is not plain.
        OSError: If the other end is gone, or does not read.
    """
    try:
        body = msgpack.packb(message)
    except (TypeError, ValueError, OverflowError) as error:
        raise FrameError(f"a value that cannot be sent: {error}") from None
    if len(body) > LARGEST_FRAME:
        raise FrameError(f"a message of {len(body):,} bytes; at most {LARGEST_FRAME:,} are sent")
    connection.settimeout(PATIENCE_SECONDS)
    connection.sendall(struct.pack(">I", len(body)) + body)


def read_frame(connection: socket.socket, first_byte_seconds: float | None = None) -> dict[str, Any] | None:
    """Return the next message; None where the other end has closed.

    Args:
        connection: The socket.
        first_byte_seconds: How long to wait for it to begin; None for ever.

    Raises:
        FrameError: If what comes is none.
        OSError: If the other end is gone, or stops in the middle.
    """
    connection.settimeout(first_byte_seconds)
    first = connection.recv(1)
    if not first:
        return None
    connection.settimeout(PATIENCE_SECONDS)
    (length,) = struct.unpack(">I", first + _exactly(connection, 3))
    if length > LARGEST_FRAME:
        raise FrameError(f"a frame of {length:,} bytes; at most {LARGEST_FRAME:,} are taken")
    try:
        message = msgpack.unpackb(_exactly(connection, length))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise FrameError(f"a frame that is not MessagePack: {error or type(error).__name__}") from None
    if not isinstance(message, dict):
        raise FrameError(f"a message that is no mapping: {type(message).__name__}")
    return message


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, "closed in the middle of a frame")
        parts += part
    return bytes(parts)


def reply_of(error: BaseException) -> dict[str, Any]:
    """Return the reply that tells of an error."""
    details = {k: v for k, v in vars(error).items() if isinstance(v, (int, str, float, type(None)))}
    text = str(error) if isinstance(error, SigpsError) else f"{type(error).__name__}: {error}"
    return {"error": type(error).__name__, "text": text[:10_000], "details": details}


def error_of(reply: Mapping[str, Any]) -> BaseException:
    """Return the error that a reply tells of: of its class where it is one of `sigps`."""
    kind, text = str(reply["error"]), str(reply.get("text"))
    if kind == "CancelledError":
        return CancelledError()
    cls = getattr(sigps.errors, kind, None) if kind in sigps.errors.__all__ else None
    if not (isinstance(cls, type) and issubclass(cls, SigpsError)):
        return ServerError(f"the job failed: {text}")
    error = cls.__new__(cls, text)  # the text is whole: what __init__ would add is in it
    error.__dict__.update(reply.get("details") or {})
    return cast(BaseException, error)


def tables_of(result: Result) -> list[int]:
    """Return descriptors of a result's tables: its vertices, then its edges where the program keeps values there.

    The caller closes them.
    """
    about = {
        "reason": result.reason,
        "supersteps": result.supersteps,
        "stats": [asdict(s) for s in result.stats],
        "aggregators": {name: _plain(value) for name, value in result.aggregators.items()},
        "device": result.device,
        "account": {line: float(seconds) for line, seconds in result.account.items()},
    }
    found = [_in_memory(result, about)]
    if result._make_edges is not None:
        found.append(_in_memory(result.edges, {}))
    return found


def result_of(descriptors: Sequence[int]) -> Result:
    """Return the result whose tables `tables_of` wrote; the descriptors are left open."""
    (ids,), fields, optional, about = _from_memory(descriptors[0], 1)
    edges = None
    if len(descriptors) > 1:
        ends, values, of_edges, _ = _from_memory(descriptors[1], 2)
        kept = EdgeFields(ends[0], ends[1], values, optional=of_edges)
        edges = lambda: kept  # noqa: E731
    about["stats"] = [SuperstepStats(**s) for s in about["stats"]]
    return Result(ids=ids, fields=fields, optional=optional, edges=edges, **about)


def send_tables(connection: socket.socket, descriptors: Sequence[int]) -> None:
    """Pass descriptors, with one byte."""
    connection.settimeout(PATIENCE_SECONDS)
    socket.send_fds(connection, [b"\0"], list(descriptors))


def read_tables(connection: socket.socket, count: int) -> list[int]:
    """Return the descriptors that the other end passes; the caller closes them.

    Raises:
        OSError: If they do not come.
    """
    connection.settimeout(PATIENCE_SECONDS)
    _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(count * array.array("i").itemsize))
    found = array.array("i")
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    if len(found) != count:
        for descriptor in found:
            os.close(descriptor)
        raise ConnectionResetError(errno.ECONNRESET, "a result did not come whole")
    return found.tolist()


def _in_memory(table: Result | EdgeFields, about: Mapping[str, Any]) -> int:
    """Return the descriptor of an Arrow IPC file in memory, sealed."""
    with needs("pyarrow"):
        import pyarrow

    notes = {**about, "optional": sorted(table._optional)}
    made = table.to_arrow().replace_schema_metadata({b"sigps": msgpack.packb(notes)})
    descriptor = os.memfd_create("sigps-result", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file, pyarrow.ipc.new_file(file, made.schema) as writer:
            writer.write_table(made)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _from_memory(
    descriptor: int, num_ids: int
) -> tuple[list[Any], dict[str, Any], frozenset[str], dict[str, Any]]:
    """Return the ids' columns, the others by name, which of those may be None, and what was noted."""
    with needs("pyarrow"):
        import pyarrow

    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        table = pyarrow.ipc.open_file(file).read_all()
    notes = msgpack.unpackb(table.schema.metadata[b"sigps"])
    optional = frozenset(notes.pop("optional"))
    columns = [
        _numpy(column, name in optional)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    names = table.column_names
    return columns[:num_ids], dict(zip(names[num_ids:], columns[num_ids:], strict=True)), optional, notes


def _numpy(column: Any, is_optional: bool) -> Any:
    """Return a column as the array that it was."""
    import pyarrow

    column = column.combine_chunks()
    if pyarrow.types.is_fixed_size_list(column.type):
        return np.array(column.flatten()).reshape(-1, column.type.list_size)
    if is_optional and not pyarrow.types.is_string(column.type):
        column = column.fill_null(NO_VERTEX)
    return np.array(column.to_numpy(zero_copy_only=False))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
