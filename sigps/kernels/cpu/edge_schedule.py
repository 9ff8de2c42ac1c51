"""The edge schedule's pass on CPU cores: one work item an edge, each in-edge tested whether its source sent."""

from __future__ import annotations

from sigps.kernels.cpu.arguments import HAS_MESSAGES, RETIRED
from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.kernels.cpu.pull import SEVEN, THREE

__all__ = ["combine_edges"]


def combine_edges(f: Functions) -> Loop:
    """Combine the messages of in-edges begin..end into inboxes that are empty.

    `v` is the row of edge `begin`. A row's inbox belongs to the piece that has the row's first edge, which lists the
    row in `touched`; the piece's share of a row that begins before it goes to `carried`, at `piece`.

    Returns how many rows are listed, and whether something is carried.
    """
    deliver, merge, load_record, load_columns = f.deliver, f.merge, f.load_record, f.load_columns
    store_slots, may_retire = f.store_slots, f.may_retire

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
                    passes, value = deliver(
                        arguments, load_record(records, s), ids, s, v, load_columns(columns, e)
                    )
                    if passes:
                        share = merge(arguments, v, empty, False, value)
                        has = True
                e += ONE
            for i in range(e, last):
                s = sources[i]
                if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(
                        arguments, load_record(records, s), ids, s, v, load_columns(columns, i)
                    )
                    if passes:
                        share = merge(arguments, v, share, True, value)
            if has and offsets[v] < begin:
                store_slots(carried.slots, piece, share)
                carried.rows[piece] = v
                carries = True
            elif has:
                store_slots(inbox.slots, v, share)
                touched[count] = v
                count += inbox.state[v] == 0
                inbox.state[v] |= HAS_MESSAGES
            e = last
        return count, carries

    return combine_edges
