"""Pulls on CPU cores: owned vertices read the records of their in-neighbours, and compute in the same pass."""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import (
    ACTIVE,
    RETIRED,
    SENDERS_ALL,
    SENDERS_BITMAP,
    SENDERS_NONE,
)
from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.native.primitives import load_row, scratch, store_row

__all__ = ["SEVEN", "THREE", "gather_combined", "gather_listed"]

PIECE = 64
THREE, SEVEN = np.uint32(3), np.uint32(7)


def gather_combined(f: Functions) -> Loop:
    """Pull: owned vertices begin..end combine their in-neighbours' records and compute.

    `sender_filter` is one of SENDERS_NONE to SENDERS_ALL.
    """
    deliver, merge = f.deliver, f.merge
    compute_vertex, commit, stops_early = f.compute_vertex, f.commit, f.stops_early

    def gather_combined(
        begin, end, arguments, in_edges, owned, fields, outbox, next_outbox, empty, sender_filter, contributions, total
    ):  # fmt: skip
        offsets, sources, columns = in_edges.offsets, in_edges.ends, in_edges.columns
        bits, records = outbox.sent, outbox.records
        ids, status, positions = owned.ids, fields.status, scratch(PIECE)
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            if status[v] == RETIRED:
                continue
            slots = empty
            has = False
            e = offsets[v]
            last = in_edges.stops[v] if sender_filter != SENDERS_NONE else e
            while sender_filter != SENDERS_BITMAP and e < last and not has:
                s = sources[e]
                if sender_filter == SENDERS_ALL or (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(columns, e))
                    if passes:
                        slots = merge(v, empty, False, value)
                        has = True
                e += ONE
            while e < last and not stops_early:
                stop = min(last, e + PIECE) if sender_filter == SENDERS_BITMAP else last
                if sender_filter == SENDERS_BITMAP:
                    count = 0
                    for i in range(e, stop):
                        s = sources[i]
                        positions[count] = i
                        count += (bits[s >> THREE] >> (s & SEVEN)) & 1
                    for k in range(count):
                        i = positions[k]
                        s = sources[i]
                        passes, value = deliver(
                            arguments, load_row(records, s), ids, s, v, load_row(columns, i)
                        )
                        if passes:
                            slots = merge(v, slots, has, value)
                            has = True
                elif sender_filter == SENDERS_ALL:
                    for i in range(e, stop):
                        s = sources[i]
                        passes, value = deliver(
                            arguments, load_row(records, s), ids, s, v, load_row(columns, i)
                        )
                        if passes:
                            slots = merge(v, slots, True, value)
                else:
                    for i in range(e, stop):
                        s = sources[i]
                        if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                            passes, value = deliver(
                                arguments, load_row(records, s), ids, s, v, load_row(columns, i)
                            )
                            if passes:
                                slots = merge(v, slots, True, value)
                e = stop
            if not has and status[v] != ACTIVE:
                continue
            outcome = compute_vertex(v, arguments, owned, fields, slots, has, ())
            is_active, is_sender, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(owned.out_degrees[v])
        return (ran, active, senders, sent_edges), total

    return gather_combined


def gather_listed(f: Functions) -> Loop:
    """Pull: owned vertices begin..end list their in-neighbours' messages in `scratch` and compute.

    `scratch` has one array for each field of a message, as long as the longest row of in-edges.
    """
    deliver = f.deliver
    compute_vertex, commit = f.compute_vertex, f.commit

    def gather_listed(
        begin, end, arguments, in_edges, owned, fields, outbox, next_outbox, scratch, sender_filter, contributions,
        total,
    ):  # fmt: skip
        offsets, sources, columns = in_edges.offsets, in_edges.ends, in_edges.columns
        bits, records = outbox.sent, outbox.records
        ids, status = owned.ids, fields.status
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            if status[v] == RETIRED:
                continue
            count = 0
            if sender_filter != SENDERS_NONE:
                for e in range(offsets[v], offsets[v + ONE]):
                    s = sources[e]
                    if sender_filter == SENDERS_ALL or (bits[s >> THREE] >> (s & SEVEN)) & 1:
                        passes, message = deliver(
                            arguments, load_row(records, s), ids, s, v, load_row(columns, e)
                        )
                        if passes:
                            store_row(scratch, count, message)
                            count += 1
            if count == 0 and status[v] != ACTIVE:
                continue
            messages = (0, count, *scratch)
            outcome = compute_vertex(v, arguments, owned, fields, messages, count > 0, ())
            is_active, is_sender, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(owned.out_degrees[v])
        return (ran, active, senders, sent_edges), total

    return gather_listed
