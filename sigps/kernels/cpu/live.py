"""Loops of monotone programs that go on after edges were inserted and deleted (`engine/cpu/live.py`), on one core.

`records` are the last records of every vertex, as in `monotone.py`. `order` [n] uint64 numbers vertices so that each is
held up by an edge from one with a smaller number: the record of its source makes the vertex's very key. UNORDERED holds
up nothing. A vertex whose key is that of superstep 0 needs no edge.

Where a message is its sender's key and a number of the edge that is not negative, keys themselves are such numbers, but
for edges that add nothing: what such an edge alone holds up seems to lose it, and pulls again.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import load_row, store_row

__all__ = [
    "UNORDERED",
    "find_improved",
    "find_tight",
    "gather_better_listed",
    "order_listed",
    "trim_unsupported",
    "unorder_dependent",
]

UNORDERED = np.uint64(2**64 - 1)
DELIVERED = 2
"""How many edges more an edge counts for, along which a message is made."""


def find_improved(f: Functions) -> Loop:
    """List the targets of new edges that their sources' last records improve. Returns how many; some may be twice."""
    deliver, current, is_better = f.deliver, f.current, f.is_better

    def find_improved(sources, targets, columns, arguments, owned, fields, records, found):
        count = 0
        for i in range(len(sources)):
            s, t = sources[i], targets[i]
            passes, value = deliver(arguments, load_row(records, s), owned.ids, s, t, load_row(columns, i))
            if passes and is_better(value[0], current(fields.states, t)):
                found[count] = t
                count += 1
        return count

    return find_improved


def find_tight(f: Functions) -> Loop:
    """List the targets of deleted edges that made their very keys. Returns how many; some may be there twice."""
    deliver, current, is_better = f.deliver, f.current, f.is_better

    def find_tight(sources, targets, columns, arguments, owned, fields, records, found):
        count = 0
        for i in range(len(sources)):
            s, t = sources[i], targets[i]
            passes, value = deliver(arguments, load_row(records, s), owned.ids, s, t, load_row(columns, i))
            key = current(fields.states, t)
            if passes and not is_better(value[0], key) and not is_better(key, value[0]):
                found[count] = t
                count += 1
        return count

    return find_tight


def gather_better_listed(f: Functions) -> Loop:
    """Pull: listed vertices look for a better key in all in-neighbours' last records, and compute."""
    deliver, merge = f.deliver, f.merge
    current, is_better, compute_vertex, commit = f.current, f.is_better, f.compute_vertex, f.commit

    def gather_better_listed(
        vertices, arguments, in_edges, owned, fields, records, next_outbox, empty, contributions, total, new_senders
    ):  # fmt: skip
        offsets, stops, sources, columns = in_edges.offsets, in_edges.stops, in_edges.ends, in_edges.columns
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for i in range(len(vertices)):
            v = vertices[i]
            best = current(fields.states, v)
            slots = empty
            has = False
            for e in range(offsets[v], stops[v]):
                s = sources[e]
                _, value = deliver(arguments, load_row(records, s), owned.ids, s, v, load_row(columns, e))
                key = value[0]
                if not is_better(best, key) and (has or is_better(key, best)):
                    slots = merge(v, slots, has, value)
                    best = slots[0]
                    has = True
            if not has:
                continue
            outcome = compute_vertex(v, arguments, owned, fields, slots, has, ())
            is_active, is_sender, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            ran += 1
            active += is_active
            if is_sender:
                new_senders[senders] = v
                senders += 1
                sent_edges += np.int64(owned.out_degrees[v])
        return (ran, active, senders, sent_edges), total

    return gather_better_listed


def unorder_dependent(f: Functions) -> Loop:
    """Make vertices UNORDERED that no one with a smaller number holds up, but an UNORDERED one does.

    A vertex whose key changed is numbered behind all others; what it held up before it may hold up still: another key
    can make the same sum, in floats. `queue` [n] begins with the `tail` vertices that are UNORDERED, and lists the
    others behind them. Returns how many there are then, and how many edges were read: more than `most_edges` where it
    was given up.
    """
    deliver, current, is_better = f.deliver, f.current, f.is_better

    def unorder_dependent(
        queue, tail, arguments, in_edges, out_edges, owned, fields, records, order, most_edges
    ):  # fmt: skip
        head, read = 0, np.int64(0)
        while head < tail and read <= most_edges:
            v = queue[head]
            record = load_row(records, v)
            head += 1
            e, last = out_edges.offsets[v], out_edges.stops[v]
            while e < last and read <= most_edges:
                t = out_edges.ends[e]
                read += 1
                if order[t] != UNORDERED:
                    _, value = deliver(arguments, record, owned.ids, v, t, load_row(out_edges.columns, e))
                    key = current(fields.states, t)
                    if not is_better(value[0], key) and not is_better(key, value[0]):
                        i, stop, own = in_edges.offsets[t], in_edges.stops[t], order[t]
                        is_held = False
                        while i < stop and not is_held and read <= most_edges:
                            s = in_edges.ends[i]
                            read += 1
                            if order[s] < own:
                                _, other = deliver(
                                    arguments,
                                    load_row(records, s),
                                    owned.ids,
                                    s,
                                    t,
                                    load_row(in_edges.columns, i),
                                )
                                is_held = not is_better(other[0], key) and not is_better(key, other[0])
                            i += np.uint64(1)
                        if not is_held:
                            order[t] = UNORDERED
                            queue[tail] = t
                            tail += 1
                e += np.uint64(1)
        return tail, read

    return unorder_dependent


def order_listed(f: Functions) -> Loop:
    """Number vertices behind all others: listed ones that a numbered one holds up, then those that these do.

    The listed ones are UNORDERED. `queue` has room for them, and begins with `tail` vertices that nothing need hold up:
    they are numbered first. Returns the next free number, and how many edges were read: more than `most_edges` where it
    was given up. Vertices that nothing holds up stay UNORDERED.
    """
    deliver, current, is_better = f.deliver, f.current, f.is_better

    def order_listed(
        vertices, queue, tail, number, arguments, in_edges, out_edges, owned, fields, records, order, most_edges
    ):  # fmt: skip
        columns = in_edges.columns
        head, read = 0, np.int64(0)
        for i in range(len(vertices)):
            v = vertices[i]
            key = current(fields.states, v)
            e, last = in_edges.offsets[v], in_edges.stops[v]
            is_held = False
            while e < last and not is_held and read <= most_edges:
                s = in_edges.ends[e]
                if order[s] < number:
                    _, value = deliver(arguments, load_row(records, s), owned.ids, s, v, load_row(columns, e))
                    is_held = not is_better(value[0], key) and not is_better(key, value[0])
                e += np.uint64(1)
                read += 1
            if is_held:
                queue[tail] = v
                tail += 1
        for i in range(tail):
            order[queue[i]] = number + np.uint64(i)
        while head < tail and read <= most_edges:
            s = queue[head]
            record = load_row(records, s)
            e, last = out_edges.offsets[s], out_edges.stops[s]
            read += np.int64(last - e)
            if read > most_edges:
                last = e
            while e < last:
                t = out_edges.ends[e]
                if order[t] == UNORDERED:
                    _, value = deliver(arguments, record, owned.ids, s, t, load_row(out_edges.columns, e))
                    key = current(fields.states, t)
                    if not is_better(value[0], key) and not is_better(key, value[0]):
                        order[t] = number + np.uint64(tail)
                        queue[tail] = t
                        tail += 1
                e += np.uint64(1)
            head += 1
        return number + np.uint64(tail), read

    return order_listed


def trim_unsupported(f: Functions) -> Loop:
    """Give vertices that nothing holds up any more the state and record of superstep 0; list them in `trimmed`.

    `queue` [n + 1] holds `size` vertices that lost an edge, each marked in `waiting`; whoever was held up by a trimmed
    one is looked at too. A vertex that has the key of superstep 0 stays. With `has_witnesses` a vertex that is looked
    at and stays takes its other states from those that hold it up, since they may have come from elsewhere; `renewed`
    lists it. Returns how many were trimmed, which are UNORDERED, how many renewed: all are listed if there is room; and
    how many edges were read, those along which a message was made thrice: more than `most_edges` where it was given up.
    """
    deliver, merge, compute_vertex = f.deliver, f.merge, f.compute_vertex
    current, is_better = f.current, f.is_better

    def trim_unsupported(
        queue, size, waiting, arguments, in_edges, out_edges, owned, fields, records, empty, first_states,
        first_records, order, trimmed, renewed, has_witnesses, most_edges,
    ):  # fmt: skip
        count, num_renewed, head, tail, room = 0, 0, 0, size, len(queue)
        read = np.int64(0)
        while head != tail and read <= most_edges:
            v = queue[head]
            head = head + 1 if head + 1 < room else 0
            waiting[v] = 0
            key, first = current(fields.states, v), current(first_states, v)
            if not is_better(key, first):
                continue
            e, last, own = in_edges.offsets[v], in_edges.stops[v], order[v]
            is_held = False
            slots = empty
            while e < last and (has_witnesses or not is_held) and read <= most_edges:
                s = in_edges.ends[e]
                read += 1
                if order[s] < own:
                    read += DELIVERED
                    _, value = deliver(
                        arguments, load_row(records, s), owned.ids, s, v, load_row(in_edges.columns, e)
                    )
                    if not is_better(value[0], key) and not is_better(key, value[0]):
                        slots = merge(v, slots, is_held, value)
                        is_held = True
                e += np.uint64(1)
            if is_held and has_witnesses:
                store_row(fields.states, v, load_row(first_states, v))
                outcome = compute_vertex(v, arguments, owned, fields, slots, True, ())
                store_row(fields.states, v, outcome[0])
                renewed[num_renewed % len(renewed)] = v
                num_renewed += 1
            if is_held:
                continue
            record = load_row(records, v)
            read += np.int64(out_edges.stops[v] - out_edges.offsets[v])
            if read > most_edges:
                continue
            for e in range(out_edges.offsets[v], out_edges.stops[v]):
                t = out_edges.ends[e]
                if waiting[t] == 0 and (order[t] >= own or own == UNORDERED):
                    read += DELIVERED
                    _, value = deliver(arguments, record, owned.ids, v, t, load_row(out_edges.columns, e))
                    other = current(fields.states, t)
                    if not is_better(value[0], other) and not is_better(other, value[0]):
                        waiting[t] = 1
                        queue[tail] = t
                        tail = tail + 1 if tail + 1 < room else 0
            store_row(fields.states, v, load_row(first_states, v))
            store_row(records, v, load_row(first_records, v))
            order[v] = UNORDERED
            trimmed[count] = v
            count += 1
        return count, num_renewed, read

    return trim_unsupported
