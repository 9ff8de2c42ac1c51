"""How many bytes a rank keeps while a job runs, by purpose: formulas of counts, for `sigps plan`."""

from __future__ import annotations

from sigps.cli.plan.prediction import PartitionSize, even_partition
from sigps.cli.plan.size import Size
from sigps.compiler.program import Delivery, VertexProgram

__all__ = ["memory"]


def memory(
    size: Size,
    program: VertexProgram | None,
    num_ranks: int,
    state_bytes: int,
    partition: PartitionSize | None = None,
) -> dict[str, int]:
    """Return the bytes that a rank keeps for each purpose while a program runs. O(1).

    Args:
        size: The graph.
        program: The vertex program; None for one that only the interpreter runs, with a direct message for each edge.
        num_ranks: Ranks that share the graph.
        state_bytes: Bytes of one vertex's fields.
        partition: The rank's partition; None for an even share, with as many ghosts as there can be.

    Returns:
        Bytes by the purposes `"graph"`, `"state"`, `"messages"`, and `"on edges"` where the program keeps values there.
    """
    partition = partition or even_partition(size.num_vertices, size.num_edges, num_ranks)
    owned, edges, ghosts = partition.vertices, partition.edges, partition.ghosts
    purposes = {
        "graph": _graph_bytes(size, program, owned, edges, ghosts),
        "state": owned * (state_bytes + 1),
        "messages": _message_bytes(program, owned, edges, ghosts),
    }
    if program is not None and program.reads_edge_links:
        purposes["on edges"] = _link_bytes(size, program, edges, is_part=owned < size.num_vertices)
    return purposes


def _graph_bytes(size: Size, program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    """One process uses the graph's own arrays; a partition of several has copies of them beside the graph's rows."""
    an_edge = (4 if size.num_vertices < 2**32 else 8) + size.column_bytes
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
    return 2 * kept * edges + kept * copies + rows + 8 * edges * program.reads_reverse


def _message_bytes(program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    if program is not None and program.delivery is Delivery.NONE:
        return 0
    if program is None or program.delivery is Delivery.DIRECT:
        a_message = sum(d.itemsize for d in program.message_dtypes) if program else 8
        return 2 * edges * (a_message + 1 + 8 + 4)  # with kind, target and sender; once sent, once arrived
    from sigps.compiler.cpu.native import compile_for_cpu

    typed = compile_for_cpu(program, {})  # finds types; edge columns count as floats
    record, inbox = (sum(dtype.itemsize for dtype in dtypes) for dtypes in (typed.record, typed.slots))
    outbox = 2 * (owned + ghosts) * (1 + record)
    if program.reads_all_at_once:
        return outbox  # lists and keys are made from the records, one vertex at a time
    return outbox + owned * (1 + inbox)
