"""The edge schedule's pass on CPU cores: one work item an edge, each in-edge tested whether its source sent."""

from __future__ import annotations

from sigps.kernels.cpu.arguments import HAS_MESSAGES, RETIRED
from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.kernels.cpu.pull import SEVEN, THREE
from sigps.native.primitives import load_row, store_row

__all__ = ["combine_edges"]


def combine_edges(f: Functions) -> Loop:
    """Combine the messages of in-edges begin..end into inboxes that are empty.

    `v` is the row of edge `begin`. A row's inbox belongs to the piece that has the row's first edge, which lists the
    row in `touched`; the piece's share of a row that begins before it goes to `carried`, at `piece`.

    Returns how many rows are listed, and whether something is carried.
    """
    deliver, merge = f.deliver, f.merge
    may_retire = f.may_retire

    def combine_edges(
        begin, end, v, piece, arguments, in_edges, owned, fields, outbox, empty, inbox, touched, carried
    ):
        offsets, sources, columns = in_edges.offsets, in_edges.ends, in_edges.columns
        bits, records = outbox.sent, outbox.records
        ids = owned.ids
        count, carries = 0, False
        e = begin
        while e < end:
            while offsets[v + ONE] <= e:
                v += ONE
            last = min(end, offsets[v + ONE])
            share = empty
            has = False
            if may_retire and fields.status[v] == RETIRED:
                e = last
            while e < last and not has:
                s = sources[e]
                if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(columns, e))
                    if passes:
                        share = merge(v, empty, False, value)
                        has = True
                e += ONE
            for i in range(e, last):
                s = sources[i]
                if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(columns, i))
                    if passes:
                        share = merge(v, share, True, value)
            if has and offsets[v] < begin:
                store_row(carried.slots, piece, share)
                carried.rows[piece] = v
                carries = True
            elif has:
                store_row(inbox.slots, v, share)
                touched[count] = v
                count += inbox.state[v] == 0
                inbox.state[v] |= HAS_MESSAGES
            e = last
        return count, carries

    return combine_edges
