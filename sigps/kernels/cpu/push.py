"""Pushes on CPU cores: senders combine messages into their targets' inboxes, then those targets compute.

One thread combines at once (`scatter_direct`), or many write messages into bins of nearby targets (`scatter_binned`),
each of which one thread combines (`apply_bins`).
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import HALTED, HAS_MESSAGES, RETIRED, UNLISTED
from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import load_row, prefetch, store_row

__all__ = ["apply_bins", "compute_listed", "scatter_binned", "scatter_direct"]

AHEAD = 8
"""How many senders before its own turn a sender's row of edges is prefetched."""


def scatter_direct(f: Functions) -> Loop:
    """Push on one thread: senders combine into their targets' inboxes; new targets are listed in `touched`."""
    deliver, merge = f.deliver, f.merge
    matters = f.matters

    def scatter_direct(list_of_senders, arguments, edges, owned, fields, outbox, inbox, touched):
        offsets, stops, targets, columns = edges.offsets, edges.stops, edges.ends, edges.columns
        state, slots = inbox.state, inbox.slots
        count = 0
        num_senders = len(list_of_senders)
        for i in range(num_senders):
            if i + AHEAD < num_senders:
                prefetch(targets, offsets[list_of_senders[i + AHEAD]])
            if i + AHEAD + AHEAD < num_senders:
                prefetch(offsets, list_of_senders[i + AHEAD + AHEAD])
            s = list_of_senders[i]
            record = load_row(outbox.records, s)
            for e in range(offsets[s], stops[s]):
                t = targets[e]
                passes, value = deliver(arguments, record, owned.ids, s, t, load_row(columns, e))
                if passes and matters(fields.states, t, value):
                    before = state[t]
                    merged = merge(t, load_row(slots, t), (before & HAS_MESSAGES) != 0, value)
                    store_row(slots, t, merged)
                    state[t] = before | HAS_MESSAGES
                    touched[count] = t
                    count += before == 0
        return count

    return scatter_direct


def scatter_binned(f: Functions) -> Loop:
    """Push, first half, one of many threads: senders write (target, value) into bins of nearby targets.

    Bin b takes targets b << shift up to (b + 1) << shift, at b * capacity in `bin_targets` and `bin_slots`; `counts`:
    [bins], how many are in each.
    """
    deliver = f.deliver
    matters, may_retire = f.matters, f.may_retire

    def scatter_binned(
        list_of_senders,
        arguments,
        edges,
        owned,
        fields,
        outbox,
        shift,
        counts,
        bin_targets,
        bin_slots,
        capacity,
    ):
        offsets, stops, targets, columns = edges.offsets, edges.stops, edges.ends, edges.columns
        num_senders = len(list_of_senders)
        for i in range(num_senders):
            if i + AHEAD < num_senders:
                prefetch(targets, offsets[list_of_senders[i + AHEAD]])
            s = list_of_senders[i]
            record = load_row(outbox.records, s)
            for e in range(offsets[s], stops[s]):
                t = targets[e]
                if may_retire and fields.status[t] == RETIRED:
                    continue
                passes, value = deliver(arguments, record, owned.ids, s, t, load_row(columns, e))
                if passes and matters(fields.states, t, value):
                    b = t >> shift
                    at = b * capacity + counts[b]
                    bin_targets[at] = t
                    store_row(bin_slots, at, value)
                    counts[b] += np.uint64(1)

    return scatter_binned


def apply_bins(f: Functions) -> Loop:
    """Push, second half: one thread combines values begin..end of a bin into its targets' inboxes."""
    merge = f.merge

    def apply_bins(begin, end, arguments, bin_targets, bin_slots, inbox, touched):
        state, slots = inbox.state, inbox.slots
        count = 0
        for at in range(begin, end):
            t = bin_targets[at]
            value = load_row(bin_slots, at)
            before = state[t]
            has = (before & HAS_MESSAGES) != 0
            store_row(slots, t, merge(t, load_row(slots, t), has, value))
            state[t] = before | HAS_MESSAGES
            touched[count] = t
            count += before == 0
        return count

    return apply_bins


def compute_listed(f: Functions) -> Loop:
    """Compute the listed vertices from their inboxes, and empty these; list which sent and which stay active."""
    compute_vertex, commit = f.compute_vertex, f.commit

    def compute_listed(
        vertices,
        arguments,
        owned,
        fields,
        inbox,
        empty,
        next_outbox,
        contributions,
        total,
        new_senders,
        new_active,
    ):
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for i in range(len(vertices)):
            v = vertices[i]
            has_messages = (inbox.state[v] & HAS_MESSAGES) != 0
            messages = load_row(inbox.slots, v) if has_messages else empty
            outcome = compute_vertex(v, arguments, owned, fields, messages, has_messages, ())
            is_active, is_sender, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            inbox.state[v] = 0 if fields.status[v] == HALTED else UNLISTED
            ran += 1
            if is_active:
                new_active[active] = v
                active += 1
            if is_sender:
                new_senders[senders] = v
                senders += 1
                sent_edges += np.int64(owned.out_degrees[v])
        return (ran, active, senders, sent_edges), total

    return compute_listed
