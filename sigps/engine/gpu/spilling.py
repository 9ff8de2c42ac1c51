"""Which part of a graph's edges a GPU holds, and which its host: a pure function of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sigps.engine.gpu.memory_plan import ORDERING, bytes_kept, bytes_while_laid_out
from sigps.errors import DeviceError

__all__ = ["Spilling", "Stream", "bytes_wanted", "choose_spilling"]

Stream = Literal["auto", "always", "never"]

_LEAST_PIECE = 1 << 16


@dataclass(frozen=True)
class Spilling:
    """How the edges of a graph are divided between a GPU and its host.

    Attributes:
        share: Which part of their positions is on the device, 0 to 1.
        piece: Edges that are laid out at a time; 32 rows are at least one piece.
    """

    share: float
    piece: int


def choose_spilling(
    stream: Stream,
    *,
    free: int,
    is_limited: bool,
    num_vertices: int,
    num_edges: int,
    num_columns: int,
    run_bytes: int,
) -> Spilling | None:
    """Return how edges are divided; None where all go to the device.

    Edges are laid out in pieces in the memory that the run takes later.

    Args:
        stream: `"never"`, `"always"`, or `"auto"`: where graph and run do not fit.
        free: Bytes that the GPU has free.
        is_limited: Whether the user limits them: then streamed edges fill what is left, else they are on the host.
        num_vertices: Local ids.
        num_edges: Edges, twice where they are laid out by source too.
        num_columns: Edge columns.
        run_bytes: What the run takes beside the graph.

    Raises:
        DeviceError: If what has to be on the device does not fit; it names the bytes.

    >>> counts = dict(num_vertices=1000, num_edges=10**6, num_columns=0, run_bytes=10**6)
    >>> choose_spilling("auto", free=10**8, is_limited=False, **counts)
    >>> choose_spilling("auto", free=7 * 10**6, is_limited=True, **counts)
    Spilling(share=0.7580544, piece=65536)
    """
    if stream == "never":
        return None
    counts = {"num_vertices": num_vertices, "num_edges": num_edges, "num_columns": num_columns}
    if stream == "auto" and bytes_wanted(stream, run_bytes=run_bytes, **counts) <= free:
        return None
    fixed = bytes_kept(num_vertices, 0, 0)
    work = max(run_bytes, _LEAST_PIECE * ORDERING)
    if fixed + work > free:
        raise DeviceError(
            f"the GPU has {free:,} bytes for this run, which needs {fixed + work:,} even with its edges on the host. "
            "precision='single' takes less, and so does a part of the graph on each of several GPUs (mpirun)",
            rank=0,
        )
    edges = bytes_kept(0, num_edges, num_columns)
    room = free - fixed - work if is_limited or stream == "auto" else 0
    return Spilling(min(1.0, room / max(1, edges)), max(_LEAST_PIECE, work // ORDERING))


def bytes_wanted(
    stream: Stream, *, num_vertices: int, num_edges: int, num_columns: int, run_bytes: int
) -> int:
    """Return the bytes of a GPU that graph and run take there where all is, or, for `"always"`, at least.

    The arguments are those of `choose_spilling`.

    >>> counts = dict(num_vertices=1000, num_edges=10**6, num_columns=0, run_bytes=10**7)
    >>> bytes_wanted("auto", **counts), bytes_wanted("always", **counts)
    (25064000, 10064000)
    """
    if stream == "always":
        return bytes_kept(num_vertices, 0, 0) + max(run_bytes, _LEAST_PIECE * ORDERING)
    return bytes_while_laid_out(num_vertices, num_edges, num_columns, run_bytes=run_bytes)
