"""Whether a run streams its edges from a packed store, and what a limit of host memory allows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sigps.costs.sizes import PartitionSize, size_of, turned_size
from sigps.engine.contract import RunOptions
from sigps.engine.table import engine_of
from sigps.errors import ConfigError, DeviceError
from sigps.graph.graph import Graph
from sigps.graph.packing.table import PageTable, chains, rows_of_ranks
from sigps.graph.report import bytes_text
from sigps.group import together
from sigps.host_memory import available_memory, bytes_of
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.compiler.program import VertexProgram

__all__ = ["Stream", "Streaming", "Transfer", "decide_streaming", "device_limit"]

Stream = Literal["auto", "always", "never"]
Transfer = Literal["auto", "bulk", "rows"]


@dataclass(frozen=True)
class Streaming:
    """What a run takes whose edges stay in a packed store.

    Attributes:
        resident: Bytes of a rank by purpose.
        cached: Bytes of unpacked edges that are kept beside them.
        values: Bytes of values on edges, and of those that wait for other ends or where these are, kept beside them.
        spilled: Bytes of the others at most, which are in files; of a GPU in memory of its host.
        room_on_edges: What the run may keep of them in memory; None for no limit.
        where_spilled: Where the others are, in words.
        changes: Bytes of `values` and `spilled` that are taken only if every value changes in every superstep, and
            none of them if none does.
        direct: Bytes of direct messages beyond one a vertex, if one goes along every edge. Edges are kept in what they
            leave of a limit; values on edges take no heed of them.
        streamed: Packed bytes that a superstep reads in which all edges matter.
        arcs: Edges that are unpacked then.
        rows: Their rows.
        needed: Bytes with all edges in memory.
        where: The store.
        why: Why it streams.
    """

    resident: dict[str, int]
    cached: int
    streamed: int
    arcs: int
    rows: int
    needed: int
    where: str
    why: str
    values: int = 0
    spilled: int = 0
    room_on_edges: int | None = None
    where_spilled: str = "in files"
    changes: int = 0
    direct: int = 0

    def __str__(self) -> str:
        resident, cached, streamed = map(
            bytes_text, (sum(self.resident.values()), self.cached, self.streamed)
        )
        on_edges = ""
        if self.values or self.spilled:
            on_edges = f", {bytes_text(self.values)} of values on edges"
            on_edges += (
                f" and at most {bytes_text(self.spilled)} of them {self.where_spilled}"
                if self.spilled
                else ""
            )
        return (
            f"{resident} in memory and {cached} of edges kept{on_edges}, at most {streamed} a superstep from "
            f"{self.where}; with all edges in memory it would be {bytes_text(self.needed)}, and {self.why}"
        )


def decide_streaming(
    program: Vertex,
    derived: VertexProgram | None,
    graph: Graph,
    device: str,
    options: RunOptions,
    *,
    host_memory: int | str | None,
    stream: Stream,
    threads: Sequence[int],
    rank: int | None = None,
    rank_on_host: int = 0,
    are_alike: bool = True,
) -> Streaming | None:
    """Return what a rank of a run that streams takes; None where it does not stream. Collective; the same on all ranks.

    Args:
        program: The program.
        derived: What the compiler derived; None for the interpreter.
        graph: The graph as it was loaded.
        device: What was asked for.
        options: How the run goes.
        host_memory: The bytes that the run may take of a rank's memory, or a text such as "8GB"; None for no limit.
        stream: `"always"`, `"never"`, or `"auto"`: where the run does not fit the limit.
        threads: Those of each rank.
        rank: The rank; None for the one that takes most.
        rank_on_host: Its number on its host, which says what GPU it has.
        are_alike: Whether all ranks were asked for the same device.

    Raises:
        ConfigError: If an option is wrong, or a run is to stream that cannot.
        DeviceError: If it does not fit the limit; it names the bytes.
    """
    if stream not in ("auto", "always", "never"):
        raise ConfigError(f"stream={stream!r} is not one of auto, always, never")
    limit = None if host_memory is None else bytes_of(host_memory, "host_memory")
    _check_transfer(options.transfer, stream, device)
    if device == "cuda":
        given = program, derived, graph, options
        return _decide_on_gpu(*given, len(threads), rank, rank_on_host, are_alike=are_alike)
    if stream == "always":
        _require(program, derived, graph, device, options)
    elif limit is None:
        return None
    from sigps.costs.memory import (
        bytes_of_direct_messages,
        bytes_of_states,
        bytes_of_tables,
        memory,
        streamed_memory,
    )

    size, states = size_of(graph), bytes_of_states(program, options.precision)
    tables = bytes_of_tables(program)
    whole = memory(
        turned_size(size, program),
        derived,
        len(threads),
        states,
        loaded=size,
        table_bytes=tables,
        num_threads=max(threads) if options.asynchronous else 0,
    )
    needed = sum(whole.values())
    if stream != "always" and limit is not None and needed <= limit:
        return None
    if stream == "never":
        raise DeviceError(
            f"the run needs {bytes_text(needed)} with its edges in memory, and host_memory is {_text(limit)}: "
            "give it more, use more ranks, or let it stream (stream='auto')"
        )
    if stream == "auto" and (why := _obstacle(program, derived, graph, device, options)):
        raise DeviceError(
            f"the run needs {bytes_text(needed)} with its edges in memory, host_memory is {_text(limit)}, and it "
            f"cannot stream: {why}"
        )
    assert graph.packed is not None
    rows, is_by_degree = graph.packed.rows, graph.packed.order is not None
    bounds = rows_of_ranks(rows.table, threads)
    names = {*derived.edge_columns, *derived.read_columns} if derived is not None else set()
    an_edge = 4 + sum(column.dtype.itemsize for name, column in rows.columns.items() if name in names)

    words = [rows.table.words, *(column.begins for name, column in rows.columns.items() if name in names)]
    page_bytes = 4 * max(int(np.diff(begins).max(initial=0)) for begins in words)

    def resident_of(vertices: int, arcs: int, num_threads: int) -> dict[str, int]:
        ghosts = min(size.num_vertices - vertices, arcs)
        part, longest = PartitionSize(vertices, 0, ghosts=ghosts), _longest(rows.table)
        given = size, derived, part, len(threads), states, longest, num_threads
        return streamed_memory(
            *given,
            page_bytes=page_bytes,
            table_bytes=tables,
            is_by_degree=is_by_degree,
            num_arcs=arcs,
            saves=options.saves,
        )

    pages = np.searchsorted(rows.table.first_rows, bounds.astype(np.uint64))
    vertices, arcs = np.diff(bounds), np.diff(rows.table.arcs[pages].astype(np.int64))
    resident = resident_of(int(vertices.max()), int(arcs.max()), max(threads))
    if limit is not None and sum(resident.values()) > limit:
        raise DeviceError(
            f"the run needs {bytes_text(sum(resident.values()))} even with its edges streamed, and host_memory is "
            f"{_text(limit)}: give it more, use more ranks, or fewer threads"
        )
    if rank is None:
        rank = int(np.diff(rows.table.words[pages].astype(np.int64)).argmax())
    elif len(threads) > 1:
        resident = resident_of(int(vertices[rank]), int(arcs[rank]), threads[rank])
    spare = 0 if limit is None else limit - sum(resident.values())
    own = rows.part(range(int(bounds[rank]), int(bounds[rank + 1])))
    packed = own.num_bytes + sum(c.num_bytes for name, c in own.columns.items() if name in names)
    unpacked, values, spilled, room = int(arcs[rank]) * an_edge, 0, 0, None
    changes = 0
    if derived is not None and derived.edge_states:
        from sigps.engine.cpu.value_sizes import least_room, most_room, waiting_bytes

        least = least_room(derived, int(arcs[rank]), len(threads))
        most = most_room(derived, int(arcs[rank]), len(threads)) - least
        changes = min(most, waiting_bytes(derived, len(threads)) * int(arcs[rank]))
        values = most if limit is None else min(spare, most)
        spilled, spare = most - values, max(0, spare - values)
        room = None if limit is None else least + values
    more_messages = max(0, int(arcs[rank] - vertices[rank]))
    direct = bytes_of_direct_messages(derived, more_messages, len(threads))
    cached = min(max(0, spare - direct), unpacked)
    left = 1 - cached / max(unpacked, 1)
    streamed, read_arcs, read_rows = (int(left * n) for n in (packed, arcs[rank], vertices[rank]))
    why = "it was asked for" if limit is None or needed <= limit else f"host_memory is {_text(limit)}"
    whole_run = resident, cached, streamed, read_arcs, read_rows, needed
    return Streaming(*whole_run, rows.where, why, values, spilled, room, changes=changes, direct=direct)


def _check_transfer(transfer: str, stream: str, device: str) -> None:
    if transfer not in ("auto", "bulk", "rows"):
        raise ConfigError(f"transfer={transfer!r} is not one of auto, bulk, rows")
    if transfer != "auto" and (device != "cuda" or stream == "never"):
        raise ConfigError(
            f"transfer={transfer!r} is of edges that stream to a GPU: use device='cuda' with stream='auto' or "
            "'always', or leave it out"
        )


def _decide_on_gpu(
    program: Vertex,
    derived: VertexProgram | None,
    graph: Graph,
    options: RunOptions,
    num_ranks: int,
    rank: int | None,
    rank_on_host: int,
    *,
    are_alike: bool,
) -> Streaming | None:
    """Return what crosses packed to the GPU of a rank; None where edges do not stream, or cross unpacked."""
    if options.transfer == "bulk":
        _require(program, derived, graph, "cuda", options)
    why = "" if are_alike else "not all ranks have device='cuda'"
    if why := why or _obstacle_to_packed(program, derived, graph, options, num_ranks):
        if options.host_memory is not None:
            raise ConfigError(
                f"beside a GPU host_memory is of packed pages, which come from disk where it ends, and {why}"
                ". Leave it out"
            )
        if num_ranks > 1 and options.stream == "always":
            raise ConfigError(
                f"on several ranks stream='always' is of edges that cross to GPUs packed, and {why}"
                ". Leave it out, or run on one rank"
            )
        return None
    assert derived is not None
    assert graph.packed is not None
    asked = functools.partial(engine_of("cuda").room, derived, graph, options)
    mine = together(lambda: asked(num_ranks=num_ranks, rank_on_host=rank_on_host), graph.group)
    rooms = graph.group.all_gather(mine)
    if (
        options.stream == "auto"
        and options.host_memory is None
        and all(needed <= free for needed, free in rooms)
    ):
        return None
    needed, free = mine
    why = "it was asked for" if needed <= free else f"the GPU has {bytes_text(free)}"
    rows, spec = graph.packed.rows, engine_of("cuda").streaming
    assert spec is not None
    num_arcs, num_vertices = graph.num_edges, graph.num_vertices
    if num_ranks > 1:
        bounds = rows_of_ranks(rows.table, [1] * num_ranks).tolist()
        parts = [rows.part(range(*ends)) for ends in itertools.pairwise(bounds)]
        rows = max(parts, key=lambda part: part.words.nbytes) if rank is None else parts[rank]
        num_arcs, num_vertices = (
            int(rows.table.arcs[-1]),
            int(rows.table.end_rows[-1]) if rows.table.num_pages else 0,
        )
    resident = spec.bytes_beside_edges(derived, graph, options, rows, num_ranks)
    read = {*derived.edge_columns, *derived.read_columns}
    columns = [rows.columns[name] for name in read if name in rows.columns]
    packed = rows.num_bytes + sum(column.num_bytes for column in columns)
    if not derived.goes_along_edges:
        packed = num_arcs = num_vertices = 0  # no page is read
    fills = options.device_memory is not None or options.stream == "auto"
    values = spilled = 0
    for size in spec.bytes_of_values(derived, num_arcs, num_ranks):
        if size <= free - sum(resident.values()) - values:
            values += size
        else:
            spilled += size
    cached = max(0, min(packed, free - sum(resident.values()) - values)) if fills else 0
    given = cached, packed - cached, num_arcs, num_vertices, needed, f"{rows.where} on the GPU's host", why
    return Streaming(resident, *given, values, spilled, where_spilled="on the GPU's host")


def _obstacle_to_packed(
    program: Vertex, derived: VertexProgram | None, graph: Graph, options: RunOptions, num_ranks: int
) -> str:
    """Say why edges do not cross to a GPU packed; empty where they may."""
    if options.transfer == "rows" or options.stream == "never":
        return f"{'transfer' if options.stream != 'never' else 'stream'}= says that they do not"
    why = _obstacle(program, derived, graph, "cuda", options)
    if why or options.transfer == "bulk":
        return why
    assert derived is not None
    may_search = derived.goes_along_edges and not derived.sends_together
    if not (graph.directed and may_search) or num_ranks > 1 or options.host_memory is not None:
        return ""
    unpacked = _unpacked_bytes(graph)
    if unpacked > available_memory():
        return ""
    return (
        f"{derived.name} searches a directed graph, of which there are no rows by source, and the host has room for "
        f"the {bytes_text(unpacked)} that all edges take unpacked: host_memory= or transfer='bulk' keeps them packed"
    )


def _unpacked_bytes(graph: Graph) -> int:
    """Return about what the rows of a directed graph take of the host, with what they are made of."""
    columns = sum(dtype.itemsize for dtype in graph.column_types().values())
    return graph.num_edges * (20 + 4 * columns) + 32 * graph.num_vertices


def device_limit(device_memory: int | str | None, device: str, num_ranks: int) -> int | None:
    """Return the bytes that a rank may take of its GPU; None for no limit.

    Raises:
        ConfigError: If the option is wrong, or is not built for the device or for ranks on others.
    """
    if device_memory is not None and device in ("cpu", "python"):
        raise ConfigError(f"device_memory limits runs on a GPU; device={device!r} has host_memory")
    if num_ranks > 1 and device_memory is not None and device != "cuda":
        raise ConfigError(f"device_memory on several ranks needs device='cuda'; this run has {device!r}")
    return None if device_memory is None else bytes_of(device_memory, "device_memory")


def _text(limit: int | None) -> str:
    return bytes_text(limit or 0)


def _require(*run: Any) -> None:
    if why := _obstacle(*run):
        raise ConfigError(f"the run cannot stream: {why}")


def _obstacle(
    program: Vertex, derived: VertexProgram | None, graph: Graph, device: str, options: RunOptions
) -> str:
    """Say why a run cannot stream; empty where it can."""
    spec = engine_of("cpu" if device == "auto" else device).streaming
    if spec is None or derived is None:
        return f"device={device!r} has all edges in memory; use device='cpu'"
    if graph.packed is None:
        return (
            "the graph was not opened from a packed store. Write one: graph.save(path, packed=True), or sigps convert "
            "--packed"
        )
    declared = program.declaration
    if declared.both_ways:
        return f"{derived.name} takes every edge from both its ends, with two columns that no store has"
    if graph.directed and not declared.directed:
        return f"{derived.name} takes edges in both directions, and the stored graph is directed: store it undirected"
    if declared.simple and not graph.derived("is simple", graph.packed.is_simple):
        return f"{derived.name} takes no loops and repeats, and the store has some: leave them out of it"
    if any(field.measure is not None for field in declared.states):
        return f"states of {derived.name} begin with measures of the graph, which are counted in memory"
    return spec.streaming_obstacle(derived, graph, options)


def _longest(table: PageTable) -> int:
    """Return the arcs of the longest run of pages that a row spans, or of a page."""
    ends = [int(table.arcs[c[-1] + 1] - table.arcs[c[0]]) for c in chains(table)] if table.num_pages else [0]
    return max(ends)
