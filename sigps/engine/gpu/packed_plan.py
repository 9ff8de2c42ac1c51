"""The memory of a GPU that a run on packed edges takes, counted before anything is read: pure functions of counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sigps.compiler.program import Consumption, EarlyExit, VertexProgram
from sigps.engine.gpu.packed_places import bytes_of_heads, inbox_words, key_tables, list_bytes
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
    is_part: bool = False,
    has_heads: bool,
    num_blocks: int,
) -> dict[str, int]:
    """Return about the bytes that a run takes beside its pages, by what they are for.

    Args:
        program: The program.
        defines: The macros that it is compiled with.
        packed: The rows of the store, or of a rank.
        num_vertices: All vertices, also those without a row; on several ranks ghosts may be all that are not owned.
        pushes: Whether rows are read one by one.
        is_part: Whether they are those of one of several ranks, to which messages cross.
        has_heads: Whether pulls that may stop early look at heads of rows.
        num_blocks: Blocks that unpack pages side by side.
    """
    table, names = packed.table, [name for name in program.edge_columns if name in packed.columns]
    num_rows = int(table.end_rows[-1]) if table.num_pages else 0
    arcs = np.diff(table.arcs).astype(np.int64)
    chunks = int((-(-arcs // _CHUNK)).sum())
    page_words = np.diff(table.words).astype(np.int64)
    for name in names:
        page_words = page_words + np.diff(packed.columns[name].begins).astype(np.int64)
    longest, most_arcs = int(page_words.max(initial=0)), int(arcs.max(initial=0))
    most_chunks = 1 + most_arcs // _CHUNK
    slots, record = int(defines["SIGPS_SLOTS_BYTES"]), int(defines["SIGPS_RECORD_BYTES"])
    of_page = (
        64 * (1 + (1 + len(names)) * most_chunks) + 32 * inbox_words(slots) * most_chunks
    )  # groups, and inboxes of long rows
    stops_early = program.early_exit is not EarlyExit.NEVER or program.priority_form is not None
    pushed = (slots + 12) + (slots + 4 if is_part else 0) if pushes else 0
    found = {
        "graph": 25 * num_vertices + 9 * num_rows + 4 * (3 + len(names)) * chunks + 80 * table.num_pages,
        "state": num_vertices * (1 + sum(dtype.itemsize for dtype in program.state_dtypes)),
        "messages": num_vertices * (2 * record + pushed) + num_vertices // 2,
        "unpacking": 4 * num_blocks * (longest + of_page),
    }
    if program.reads_all_at_once:
        chained = [(len(c), int(table.arcs[c[-1] + 1] - table.arcs[c[0]])) for c in chains(table)]
    if program.consumption is Consumption.LISTED:
        longest_chain = max((arcs for _, arcs in chained), default=0)
        found["lists"] = list_bytes(
            longest_chain, num_blocks, program.message_dtypes, sorts=bool(program.sorts_by)
        )
    elif program.consumption is Consumption.GROUPED:
        spanning = [arcs for num_pages, arcs in chained if num_pages > 1]
        tables = key_tables(max(spanning, default=0), len(spanning), num_blocks, _MOST_OF_KEY)
        found["tables"] = tables.num_bytes(_MOST_OF_KEY)
    return found | ({"heads": bytes_of_heads(num_rows)} if has_heads and stops_early else {})
