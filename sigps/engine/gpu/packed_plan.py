"""The memory of a GPU that a run on packed edges takes, counted before anything is read: pure functions of counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.engine.gpu.crossing_plan import bytes_to_cross
from sigps.engine.gpu.memory_plan import bytes_to_find, direct_bytes
from sigps.engine.gpu.packed_places import inbox_words, key_tables, list_bytes, most_heads, walk_bytes
from sigps.engine.gpu.streamed_graph import BYTES_OF_VERTEX
from sigps.graph.packing.table import chains
from sigps.graph.packing.unpacker import PackedRows

__all__ = ["bytes_beside_packed"]

_CHUNK = 1024
_MOST_OF_KEY = 16  # bytes of a key and its sum


def bytes_beside_packed(
    program: VertexProgram,
    defines: Mapping[str, str],
    packed: PackedRows,
    num_vertices: int,
    *,
    pushes: bool,
    num_ranks: int = 1,
    has_heads: bool,
    is_descending: bool = False,
    num_blocks: int,
    has_ids: bool = False,
) -> dict[str, int]:
    """Return about the bytes that a run takes beside its pages, by what they are for.

    Args:
        program: The program.
        defines: The macros that it is compiled with.
        packed: The rows of the store, or of a rank.
        num_vertices: All vertices, also those without a row; on several ranks ghosts may be all that are not owned.
        pushes: Whether rows are read one by one.
        num_ranks: How many ranks share the graph; of several `packed` is what one has.
        has_heads: Whether pulls that may stop early look at heads of rows.
        is_descending: Whether no row has more arcs than the one before it.
        num_blocks: Blocks that unpack pages side by side.
        has_ids: Whether ids that compute() sees are kept beside the numbers of vertices.
    """
    table, is_part = packed.table, num_ranks > 1
    num_rows = int(table.end_rows[-1]) if table.num_pages else 0
    slots, record = int(defines["SIGPS_SLOTS_BYTES"]), int(defines["SIGPS_RECORD_BYTES"])
    pushed = (slots + 12) + (slots + 4 if is_part else 0) if pushes else 0
    messages = num_vertices * (2 * record + pushed) + num_vertices // 2
    if program.delivery is Delivery.DIRECT:
        messages = direct_bytes(program, defines, num_rows if is_part else num_vertices)
    found = {
        "graph": BYTES_OF_VERTEX * num_vertices,
        "state": num_vertices * (1 + sum(dtype.itemsize for dtype in program.state_dtypes)),
        "messages": messages,
    }
    if program.delivery is Delivery.DIRECT:
        owned = num_rows if is_part else num_vertices
        found["ids"] = bytes_to_find(num_vertices, owned, by_gid=not is_part, by_id=has_ids)
    if not program.goes_along_edges:
        return found
    names = [name for name in program.columns_of_edges if name in packed.columns]
    arcs = np.diff(table.arcs).astype(np.int64)
    chunks = int((-(-arcs // _CHUNK)).sum())
    page_words = np.diff(table.words).astype(np.int64)
    for name in names:
        page_words = page_words + np.diff(packed.columns[name].begins).astype(np.int64)
    longest, most_arcs = int(page_words.max(initial=0)), int(arcs.max(initial=0))
    most_chunks = 1 + most_arcs // _CHUNK
    of_page = (
        64 * (1 + (1 + len(names)) * most_chunks) + 32 * inbox_words(slots) * most_chunks
    )  # groups, and inboxes of long rows
    found["graph"] += 9 * num_rows + 4 * (3 + len(names)) * chunks + 80 * table.num_pages
    found["unpacking"] = 4 * num_blocks * (longest + of_page)
    known = chains(table) if table.num_pages else ()
    chained = [(len(c), int(table.arcs[c[-1] + 1] - table.arcs[c[0]])) for c in known]
    longest_chain = max((arcs for _, arcs in chained), default=0)
    if program.reads_edges:
        if program.edge_states:
            found["who wrote"] = num_vertices // 8
            most = int(table.arcs[-1])  # of which all may lead to other ranks
            found["values that cross"] = bytes_to_cross(program, most, num_rows, num_ranks)
        walked = program.read_columns
        types = [packed.columns[name].dtype if name in names else np.dtype(float) for name in walked]
        lids = num_vertices if is_part else 0
        found["walks"] = walk_bytes(num_vertices, lids, longest_chain, num_blocks, types)
    if program.delivery is Delivery.DIRECT:
        return found
    stops_early = program.early_exit is not EarlyExit.NEVER or program.priority_form is not None
    if program.consumption is Consumption.LISTED:
        found["lists"] = list_bytes(
            longest_chain, num_blocks, program.message_dtypes, sorts=bool(program.sorts_by)
        )
    elif program.consumption is Consumption.GROUPED:
        spanning = [arcs for num_pages, arcs in chained if num_pages > 1]
        tables = key_tables(max(spanning, default=0), len(spanning), num_blocks, _MOST_OF_KEY)
        found["tables"] = tables.num_bytes(_MOST_OF_KEY)
    has_heads &= stops_early and not program.reads_edges
    return found | ({"heads": 4 * most_heads(table, by_degree=is_descending)} if has_heads else {})
