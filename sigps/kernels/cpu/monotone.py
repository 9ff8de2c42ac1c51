"""Pulls of monotone programs (`compiler/proofs/monotone.py`) on CPU cores: only better keys are looked for.

`records` are the last records of every vertex, [n + g]: the worst value where there never was one.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import load_row, store_row

__all__ = ["gather_better", "gather_better_first", "store_last"]


def gather_better(f: Functions) -> Loop:
    """Pull: owned vertices begin..end look for a better key in their in-neighbours' last records, and compute.

    No sender filter is needed: a record that was read before is no better than the current value, nor is the worst
    value of one that never was written. Few keys are as good as the best so far, so one comparison ends with most
    edges. A vertex that `bound` would not improve along its best in-edge is skipped.
    """
    return _gather(f, is_first=False)


def gather_better_first(f: Functions) -> Loop:
    """The same for all vertices; the key column of `bound` holds the worst value, and is filled with the right ones."""
    return _gather(f, is_first=True)


def _gather(f: Functions, is_first: bool) -> Loop:
    deliver, merge = f.deliver, f.merge
    current, is_better, compute_vertex, commit = f.current, f.is_better, f.compute_vertex, f.commit
    key_column = f.key_column

    def gather_better(
        begin,
        end,
        arguments,
        in_edges,
        owned,
        fields,
        records,
        next_outbox,
        empty,
        bound,
        contributions,
        total,
    ):
        offsets, stops, sources, columns = in_edges.offsets, in_edges.stops, in_edges.ends, in_edges.columns
        ids = owned.ids
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            best = current(fields.states, v)
            if is_first:
                best_column = bound.columns[key_column][v]
            else:
                _, value = deliver(
                    arguments, load_row(bound.records, 0), ids, v, v, load_row(bound.columns, v)
                )
                if not is_better(value[0], best):
                    continue
            slots = empty
            has = False
            for e in range(offsets[v], stops[v]):
                s = sources[e]
                _, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(columns, e))
                key = value[0]
                if not is_better(best, key) and (has or is_better(key, best)):
                    slots = merge(v, slots, has, value)
                    best = slots[0]
                    has = True
                if is_first:
                    column = columns[key_column][e]
                    best_column = column if is_better(column, best_column) else best_column
            if is_first:
                bound.columns[key_column][v] = best_column
            if not has:
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

    return gather_better


def store_last(f: Functions) -> Loop:
    """Copy the records that vertices begin..end sent to `last_records`; return the best key of `best` and these."""
    is_better, key_field = f.is_better, f.key_field

    def store_last(begin, end, next_outbox, last_records, best):
        for v in range(begin, end):
            if next_outbox.sent[v] != 0:
                record = load_row(next_outbox.records, v)
                store_row(last_records, v, record)
                if is_better(record[key_field], best):
                    best = record[key_field]
        return best

    return store_last
