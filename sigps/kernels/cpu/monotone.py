"""The pull of monotone programs (`compiler/monotone.py`) on CPU cores; `cpu.py` says what loops share.

records    the last record of every vertex, [n + g]: the worst value where there never was one
reach      (records: [1], columns: ([n], ...)): the best of what was said in the last superstep, and of each
           column that goes into keys the best value among a vertex's in-edges
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.loops import ONE, Functions, Loop

__all__ = ["gather_better", "gather_better_first", "keep_last"]


def gather_better(f: Functions) -> Loop:
    """Pull: owned vertices begin..end look for a better key in their in-neighbours' last records, and compute.

    Nobody is asked who sent: a record that was heard before is no better than what is known, nor is the worst value of
    one that never was written. Few keys are as good as the best so far, so one comparison ends with most edges.
    A vertex that the best of what was said would not improve along its best in-edge is passed over.
    """
    return _gather(f, is_first=False)


def gather_better_first(f: Functions) -> Loop:
    """The same for all vertices; the column of `reach` comes filled with the worst value, and gets the right ones."""
    return _gather(f, is_first=True)


def _gather(f: Functions, is_first: bool) -> Loop:
    deliver, merge, load_record, load_columns = f.deliver, f.merge, f.load_record, f.load_columns
    known, is_better, run, commit = f.known, f.is_better, f.run, f.commit
    added = f.added

    def gather_better(begin, end, job, pull, own, fields, records, write, empty, reach, given, total):
        offsets, sources, columns = pull
        ids = own[0]
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            best = known(fields[1], v)
            if is_first:
                best_column = reach[1][added][v]
            else:
                _, value = deliver(job, load_record(reach[0], 0), ids, v, v, load_columns(reach[1], v))
                if not is_better(value[0], best):
                    continue
            slots = empty
            has = False
            for e in range(offsets[v], offsets[v + ONE]):
                s = sources[e]
                _, value = deliver(job, load_record(records, s), ids, s, v, load_columns(columns, e))
                key = value[0]
                if not is_better(best, key) and (has or is_better(key, best)):
                    slots = merge(slots, has, value)
                    best = slots[0]
                    has = True
                if is_first:
                    column = columns[added][e]
                    best_column = column if is_better(column, best_column) else best_column
            if is_first:
                reach[1][added][v] = best_column
            if not has:
                continue
            outcome = run(v, job, own, fields, slots, has, ())
            is_active, is_sender, total = commit(v, outcome, own, fields, write, given, total)
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(own[2][v])
        return (ran, active, senders, sent_edges), total

    return gather_better


def keep_last(f: Functions) -> Loop:
    """Bring what vertices begin..end said from the records written to those kept; return the best key of all."""
    load_record, store_record, is_better, said = f.load_record, f.store_record, f.is_better, f.said

    def keep_last(begin, end, sent, written, kept, best):
        for v in range(begin, end):
            if sent[v] != 0:
                record = load_record(written, v)
                store_record(kept, v, record)
                if is_better(record[said], best):
                    best = record[said]
        return best

    return keep_last
