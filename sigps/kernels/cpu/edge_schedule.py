"""The edge schedule's pass on CPU cores: one work item an edge; `cpu.py` says what loops share.

carried    (rows: [pieces], slots: [pieces]): what pieces found of rows that begin in a piece before
"""

from __future__ import annotations

from sigps.kernels.cpu.loops import HEARD, ONE, SEVEN, THREE, Functions, Loop

__all__ = ["combine_edges"]


def combine_edges(f: Functions) -> Loop:
    """Combine what in-edges begin..end bring into inboxes that are empty; every edge is asked whether its source sent.

    `v` is the row of edge `begin`. A row's inbox belongs to the piece that has the row's first edge, which lists the
    row in `touched`; the piece's share of a row that begins before it goes to `carried`, at `piece`.

    Returns how many rows are listed, and whether something is carried.
    """
    deliver, merge, load_record, load_columns = f.deliver, f.merge, f.load_record, f.load_columns
    store_slots, may_retire = f.store_slots, f.may_retire

    def combine_edges(begin, end, v, piece, job, pull, own, fields, read, empty, inbox, touched, carried):
        offsets, sources, columns = pull
        bits, records = read
        has, slots = inbox
        count, carries = 0, False
        e = begin
        while e < end:
            while offsets[v + ONE] <= e:
                v += ONE
            last = min(end, offsets[v + ONE])
            share = empty
            is_heard = False
            if may_retire and fields[0][v] == 2:
                e = last
            while e < last and not is_heard:
                s = sources[e]
                if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(
                        job, load_record(records, s), own[0], s, v, load_columns(columns, e)
                    )
                    if passes:
                        share = merge(empty, False, value)
                        is_heard = True
                e += ONE
            for i in range(e, last):
                s = sources[i]
                if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(
                        job, load_record(records, s), own[0], s, v, load_columns(columns, i)
                    )
                    if passes:
                        share = merge(share, True, value)
            if is_heard and offsets[v] < begin:
                store_slots(carried[1], piece, share)
                carried[0][piece] = v
                carries = True
            elif is_heard:
                store_slots(slots, v, share)
                touched[count] = v
                count += has[v] == 0
                has[v] |= HEARD
            e = last
        return count, carries

    return combine_edges
