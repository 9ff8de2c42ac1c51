"""Messages by key on CPU cores: added up by key in a table, or sorted.

The table of a thread has a place for each key of one vertex: it is found by hashing, and the next free one is taken
where another key has it. Of a vertex with d messages only the first 2d places or so are used, rounded up to a power of
two. A place belongs to the vertex whose number stands in its stamp, so places are never cleared.

Messages of one key are added up in the order in which they come, and so are those of one key in a sorted list: sums of
floats do not depend on where other keys lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.kernels.cpu.arguments import ACTIVE, RETIRED, SENDERS_ALL, SENDERS_NONE
from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.kernels.cpu.pull import SEVEN, THREE
from sigps.native.primitives import keep_fault, load_row, store_row

__all__ = ["choose_key", "gather_grouped", "group_messages", "places_shift", "put_key", "sort_list"]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_RUN = 12


def gather_grouped(f: Functions) -> Loop:
    """Pull: owned vertices begin..end find the key of most weight among their in-neighbours' messages, and compute.

    `table` is a `KeyTable` for the longest row of in-edges.
    """
    deliver = f.deliver
    compute_vertex, commit = f.compute_vertex, f.commit
    put, choose = put_key(f), choose_key(f)

    def gather_grouped(
        begin, end, arguments, in_edges, owned, fields, outbox, next_outbox, table, empty, sender_filter, contributions,
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
            slots = empty
            if sender_filter != SENDERS_NONE:
                stamp, shift = v - begin + 1, places_shift(offsets[v + ONE] - offsets[v])
                for e in range(offsets[v], offsets[v + ONE]):
                    s = sources[e]
                    if sender_filter == SENDERS_ALL or (bits[s >> THREE] >> (s & SEVEN)) & 1:
                        passes, value = deliver(
                            arguments, load_row(records, s), ids, s, v, load_row(columns, e)
                        )
                        if passes:
                            count = put(v, table, stamp, shift, count, empty, value)
                slots = choose(table, count, empty)
            if count == 0 and status[v] != ACTIVE:
                continue
            outcome = compute_vertex(v, arguments, owned, fields, slots, count > 0, ())
            is_active, is_sender, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(owned.out_degrees[v])
        return (ran, active, senders, sent_edges), total

    return gather_grouped


def group_messages(f: Functions) -> Loop:
    """Find the key of most weight of each target, given an order that brings equal targets together.

    Fills out_targets and out_slots, and returns how many targets there are. `table` is for as many messages as one
    target has; `arguments` are those of the superstep that reads the messages.
    """
    lift = f.lift
    put, choose = put_key(f), choose_key(f)

    def group_messages(order, targets, messages, arguments, empty, table, out_targets, out_slots):
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        shift, stamp, count = places_shift(len(table.used)), 0, 0
        for i in range(len(order)):
            at = order[i]
            if stamp == 0 or targets[at] != out_targets[stamp - 1]:
                if stamp > 0:
                    store_row(out_slots, stamp - 1, choose(table, count, empty))
                out_targets[stamp] = targets[at]
                stamp += 1
                count = 0
            value, fault = lift(env, arguments.params, load_row(messages, at))
            keep_fault(-1, fault)  # of no vertex here
            count = put(-1, table, stamp, shift, count, empty, value)
        if stamp > 0:
            store_row(out_slots, stamp - 1, choose(table, count, empty))
        return stamp

    return group_messages


def sort_list(f: Functions) -> Loop:
    """Sort the messages of one vertex by key; equal keys keep their order.

    The arrays have as many places again behind those of all messages: short runs are sorted by insertion, then merged
    from one half into the other and back. Returns where the messages are then.
    """
    key_at = _key_at(f)

    def sort_list(v, arguments, messages):
        begin, end, arrays = messages[0], messages[1], messages[2:]
        first = begin
        while first < end:
            last = min(first + _RUN, end)
            for i in range(first + 1, last):
                row, mine = load_row(arrays, i), key_at(v, arguments, arrays, i)
                j = i
                while j > first and mine < key_at(v, arguments, arrays, j - 1):
                    store_row(arrays, j, load_row(arrays, j - 1))
                    j -= 1
                store_row(arrays, j, row)
            first = last
        count, width = end - begin, _RUN
        source, goal = begin, begin + len(arrays[0]) // 2
        while width < count:
            first = 0
            while first < count:
                middle, last = min(first + width, count), min(first + 2 * width, count)
                i, j = first, middle
                for at in range(first, last):
                    takes_left = i < middle
                    if takes_left and j < last:
                        left = key_at(v, arguments, arrays, source + i)
                        takes_left = left <= key_at(v, arguments, arrays, source + j)
                    if takes_left:
                        store_row(arrays, goal + at, load_row(arrays, source + i))
                        i += 1
                    else:
                        store_row(arrays, goal + at, load_row(arrays, source + j))
                        j += 1
                first = last
            source, goal = goal, source
            width += width
        return (source, source + count, *arrays)

    return sort_list


def _key_at(f: Functions) -> Loop:
    key = f.key

    def key_at(v, arguments, arrays, at):
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        found, fault = key(env, arguments.params, load_row(arrays, at))
        keep_fault(v, fault)
        return found

    return key_at


def places_shift(count: Any) -> Any:
    """Return by how many bits a hash is shifted to number the places for so many keys."""
    shift, size = np.uint64(62), 4
    while size < 2 * count:
        size += size
        shift -= ONE
    return shift


def put_key(f: Functions) -> Loop:
    """Return what adds a message to a table, of one vertex by its stamp."""
    merge = f.merge

    def put(v, table, stamp, shift, count, empty, value):
        """Add a message to what its key has; return how many keys there are."""
        last = (ONE << (np.uint64(64) - shift)) - ONE
        at = (np.uint64(value[0]) * _SPREAD) >> shift
        while table.stamps[at] == stamp and load_row(table.rows, at)[0] != value[0]:
            at = (at + ONE) & last
        if table.stamps[at] == stamp:
            store_row(table.rows, at, merge(v, load_row(table.rows, at), True, value))
            return count
        table.stamps[at] = stamp
        store_row(table.rows, at, merge(v, empty, False, value))
        table.used[count] = at
        return count + 1

    return put


def choose_key(f: Functions) -> Loop:
    """Return what finds in a table the key of most weight."""
    is_more = f.is_more

    def choose(table, count, empty):
        """Return the slots of the key of most weight; of equal ones of the smallest."""
        best = empty
        for i in range(count):
            slots = load_row(table.rows, table.used[i])
            if i == 0 or is_more(slots, best):
                best = slots
        return best

    return choose
