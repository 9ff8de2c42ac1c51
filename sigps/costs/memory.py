"""How many bytes a rank keeps while a job runs, by purpose: formulas of counts, for `sigps plan` and reports."""

from __future__ import annotations

from typing import Literal

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.costs.sizes import PartitionSize, Size, even_partition
from sigps.graph.building.rows import MIN_COUNTED_EDGES
from sigps.model.vertex import Vertex

__all__ = ["bytes_of_direct_messages", "bytes_of_states", "bytes_of_tables", "memory", "streamed_memory"]


def memory(
    size: Size,
    program: VertexProgram | None,
    num_ranks: int,
    state_bytes: int,
    partition: PartitionSize | None = None,
    *,
    loaded: Size | None = None,
    table_bytes: int = 0,
    num_threads: int = 0,
) -> dict[str, int]:
    """Return the bytes that a rank keeps for each purpose while a program runs, and for a time beyond that. O(1).

    Where a program sends less than a message along each edge it takes less.

    Args:
        size: The graph, with its edges in the directions in which the program takes them.
        program: The vertex program; None for one that only the interpreter runs, with a direct message for each edge.
        num_ranks: Ranks that share the graph.
        state_bytes: Bytes of one vertex's fields.
        partition: The rank's partition; None for an even share, with as many ghosts as there can be.
        loaded: The graph as it is loaded, where its edges have other directions there: it stays in memory.
        table_bytes: Bytes of the parameters that are tables.
        num_threads: Threads on CPU cores of a run that may have no barriers; 0 where it has supersteps alone.

    Returns:
        Bytes by purpose. `"graph"`; `"state"`, with lists of the vertices that run and send; `"messages"`. Where there
        are such: `"as loaded"`; `"columns"` of vertices; `"tables"`; `"on edges"`, of what the program keeps there;
        `"residuals"` of a contraction; and `"for a time"`, what laying the graph out, counting triangles, or the values
        on edges as a result take at their most beyond what state, messages and edges then have.
    """
    partition = partition or even_partition(size.num_vertices, size.num_edges, num_ranks)
    owned, edges, ghosts = partition.vertices, partition.edges, partition.ghosts
    is_part = owned < size.num_vertices
    purposes = {
        "graph": _graph_bytes(size, program, owned, edges, ghosts),
        "state": owned * (state_bytes + 1 + 8 * 4),
        "messages": _message_bytes(program, owned, edges, ghosts),
    }
    if program is not None and program.reads_edge_links:
        purposes["on edges"] = _link_bytes(size, program, edges, is_part=is_part)
    if program is not None and num_ranks == 1 and num_threads:
        from sigps.engine.cpu.residuals import residual_bytes

        purposes["residuals"] = residual_bytes(program, owned, edges, num_threads)
    running = sum(purposes.values()) - purposes["graph"]
    briefly = max(
        _setup_bytes(size, program, edges, loaded, is_part=is_part), _result_bytes(size, program, edges)
    )
    if is_part:
        rows = _rows_bytes(size) // num_ranks
        # Keys and columns as kept, sorted, sent and arrived; the ends of a chunk.
        rebuilt = 4 * (8 + size.column_bytes) * edges + 16 * min(edges, _CHUNK_EDGES)
        rebuilding = 0 if loaded in (None, size) else rebuilt
        routing = rows + _routing_bytes(size, program, owned, edges, ghosts)
        briefly = max(briefly, max(routing, rebuilding) - purposes["graph"])
    purposes["as loaded"] = 0 if loaded in (None, size) else _rows_bytes(loaded) // num_ranks
    purposes["columns"] = owned * (size.vertex_bytes + _bytes_from_columns(program))
    purposes["tables"] = table_bytes
    purposes["for a time"] = max(0, briefly - running)
    always = ("graph", "state", "messages")
    return {name: num_bytes for name, num_bytes in purposes.items() if num_bytes or name in always}


def streamed_memory(
    size: Size,
    program: VertexProgram | None,
    partition: PartitionSize,
    num_ranks: int,
    state_bytes: int,
    longest: int,
    num_threads: int,
    *,
    page_bytes: int = 0,
    table_bytes: int = 0,
    is_by_degree: bool = False,
    num_arcs: int = 0,
    saves: bool = False,
) -> dict[str, int]:
    """Return the same for a run whose edges stay in a packed store. Pure.

    Args:
        size: The graph.
        program: The vertex program.
        partition: The rank's partition; its edges count as none.
        num_ranks: Ranks that share the graph.
        state_bytes: Bytes of one vertex's fields.
        longest: The arcs of the longest block of rows.
        num_threads: Threads of a rank, each of which unpacks a block.
        page_bytes: Bytes of the largest page, which each of them reads.
        table_bytes: Bytes of the parameters that are tables.
        is_by_degree: Whether rows are by degree.
        num_arcs: Edges of the rank's rows.
        saves: Whether there are state logs, for which the values on all of these are brought together.

    Returns:
        Bytes by purpose. `"on edges"` are those of values on edges that can be in no file; of direct messages
        `"messages"` has those of one a vertex, and `bytes_of_direct_messages` those of more.
    """
    rows = size._replace(num_edges=0, directed=False)
    purposes = memory(rows, program, num_ranks, state_bytes, partition, table_bytes=table_bytes)
    purposes["messages"] += bytes_of_direct_messages(program, partition.vertices, num_ranks)
    walked = 0
    if num_ranks > 1:
        purposes["numbering"] = (4 + 4 * is_by_degree) * size.num_vertices
    elif is_by_degree:
        purposes["numbering"] = (8 + 8 + 8) * size.num_vertices
    if num_ranks > 1:
        walked = 4 if program is None or program.reads_edges else 0  # gids beside local ids
    from sigps.graph.packing.unpacker import UNPACKING_BYTES

    purposes["unpacking"] = num_threads * (
        longest * (4 + size.column_bytes + walked) + UNPACKING_BYTES + page_bytes
    )
    if program is not None and program.edge_states:
        from sigps.engine.cpu.value_sizes import least_room, thread_bytes

        purposes["on edges"] = least_room(program, num_arcs, num_ranks)
        purposes["on edges"] += num_threads * thread_bytes(program, longest)
        purposes["on edges"] += (
            8 * longest + size.num_vertices
        )  # where a value of the other end lies; who wrote
        if saves:
            kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
            purposes["for a time"] = (8 + kept) * num_arcs
    return purposes


def bytes_of_direct_messages(program: VertexProgram | None, num_messages: int, num_ranks: int) -> int:
    """Return the most bytes that so many direct messages of a rank take; 0 where there are none."""
    if program is not None and program.delivery is not Delivery.DIRECT:
        return 0
    return num_messages * _direct_message_bytes(program, is_part=num_ranks > 1)


def bytes_of_states(program: Vertex, precision: Literal["single", "double"]) -> int:
    """Return the bytes of one vertex's fields."""
    return sum(field.dtype(precision).itemsize for field in program.declaration.states)


def bytes_of_tables(program: Vertex) -> int:
    """Return the bytes of the parameters that are tables."""
    tables = (field.name for field in program.declaration.params if field.is_table)
    return sum(getattr(program, name).values.nbytes for name in tables)


_CHUNK_EDGES = 1 << 20


def _rows_bytes(size: Size) -> int:
    """Return the bytes of a graph's offsets, targets and edge columns."""
    return size.num_edges * (_index_bytes(size) + size.column_bytes) + 8 * size.num_vertices


def _index_bytes(size: Size) -> int:
    return 4 if size.num_vertices < 2**32 else 8


def _bytes_from_columns(program: VertexProgram | None) -> int:
    """Return the bytes of the values that a vertex's states begin with, where columns have them."""
    states = zip(program.states, program.state_dtypes, strict=True) if program is not None else ()
    return sum(dtype.itemsize for field, dtype in states if field.column is not None)


def _setup_bytes(
    size: Size, program: VertexProgram | None, edges: int, loaded: Size | None, *, is_part: bool
) -> int:
    """Return the most that goes again before the first superstep: an order of edges, or triangles."""
    sorted_edges = min(edges, MIN_COUNTED_EDGES)  # more are counted into rows
    turning = 0 if loaded in (None, size) else 8 * edges + 16 * sorted_edges
    sorting = (
        8 + (_index_bytes(size) if size.directed else 0)
    ) * sorted_edges  # or looking for parallel edges
    if program is None or not any(field.measure is not None for field in program.states):
        return max(turning, sorting)
    pairs = size.num_edges if size.directed else size.num_edges // 2
    whole = 4 * size.num_edges + 8 * size.num_vertices if is_part else 0  # all edges, on every rank
    return max(turning, sorting, whole + 2 * (4 + 1) * pairs + 72 * size.num_vertices)


def _routing_bytes(size: Size, program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    """Return the most that a partition takes while its edges come from other ranks: as they arrived, and in order."""
    index, columns = _index_bytes(size), size.column_bytes
    by_vertex = 2 * 4 * size.num_vertices + 5 * 8 * (owned + ghosts)  # local ids and uses of all; orders
    if not size.directed:
        return by_vertex + 3 * (index + columns) * edges
    arrived, placed = 2 * index + columns, index + columns
    in_order = arrived + 2 * 4 + 8 + placed  # beside local ids, and the order
    moving = arrived + 4 * 8  # beside rows, owners and the order of those that leave
    outgoing = (
        placed if program is None or program.reads_edges else 0
    )  # in-edges are there while out-edges come
    return by_vertex + (max(in_order, moving, 2 * arrived) + outgoing) * edges


def _result_bytes(size: Size, program: VertexProgram | None, edges: int) -> int:
    """Return what the values on edges take while they become a result: both ends of each, in the order of ids."""
    if program is None or not program.edge_states:
        return 0
    kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    links = 8 * edges * program.reads_reverse
    return ((40 if size.directed else 37) + 2 * kept) * edges + links


def _graph_bytes(size: Size, program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    """One process uses the graph's own arrays; a partition of several has copies of them beside the graph's rows."""
    an_edge = _index_bytes(size) + size.column_bytes
    is_part = owned < size.num_vertices
    copies = 3 if is_part else 2 if size.directed else 1
    if is_part and (program is None or program.reads_edges):
        copies += 1
    offsets = 8 * (copies * owned + ghosts)
    numbering = (4 + 8 + 8) * owned + (8 + 8) * ghosts if is_part else 4 * owned
    return copies * edges * an_edge + offsets + numbering


def _link_bytes(size: Size, program: VertexProgram, edges: int, *, is_part: bool) -> int:
    """Two copies of the values kept on edges, and rows of remote neighbours, at most those of all edges."""
    kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    needs_rows = program.reads_neighbors or program.reads_reverse
    copies = size.num_edges - edges if is_part and needs_rows else 0
    rows = (4 + 8) * copies + 4 * edges if copies else 0  # targets and send lists, and a row for each edge
    rows += (8 + 2 * kept) * copies  # as they leave and as they arrive
    return 2 * kept * edges + kept * copies + rows + 8 * edges * program.reads_reverse


def _direct_message_bytes(program: VertexProgram | None, *, is_part: bool) -> int:
    """Return the most that a direct message takes: written, joined with those of other threads, sent, and sorted."""
    fields = sum(d.itemsize for d in program.message_dtypes) if program else 8
    written = fields + 1 + 8 + 4  # kind, target and sender
    # As written, as it arrived, in order; ids, ranks and orders.
    sent = 3 * fields + 9 * 8 if is_part else 0
    if program is None or program.consumption is not Consumption.LISTED:
        return max(3 * written + 8, sent)
    places = 2 if program.sorts_by else 1
    arrived = places * fields
    # Target, row and order; groups of targets, or places.
    ordered = fields + 8 + 4 + 8 + max(12, arrived + 8 * places * (places - 1))
    queued = written + written // 2  # queues have room left
    joining = queued + max(8, *(d.itemsize for d in program.message_dtypes))  # one column twice
    return max(arrived + queued, joining, sent, ordered)


def _message_bytes(program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    if program is not None and program.delivery is Delivery.NONE:
        return 0
    if program is None or program.delivery is Delivery.DIRECT:
        return bytes_of_direct_messages(program, edges, 2 if ghosts else 1)
    from sigps.compiler.cpu.native import compile_for_cpu

    typed = compile_for_cpu(program, {})  # finds types; edge columns count as floats
    record, inbox = (sum(dtype.itemsize for dtype in dtypes) for dtypes in (typed.record, typed.slots))
    outbox = 2 * (owned + ghosts) * (1 + record) + 2 * ghosts * (
        4 + record
    )  # as they leave and as they arrive
    if program.reads_all_at_once:
        return outbox  # lists and keys are made from the records, one vertex at a time
    return outbox + owned * (1 + inbox)
