"""The engine's loops on CPU cores: plain Python that Numba compiles around a program's functions.

Each factory takes the functions of one program (`Functions`) and returns a loop. The loop knows the schedule and
nothing of the work; the functions know the work and no array. A loop runs on one thread, over a range or a list
of vertices that the engine cuts; it writes only those vertices, so no loop needs an atomic.

Every index is a local id: n owned vertices, then g ghosts. What the loops share:

    job     (env, params, aggregates)
    pull    (offsets: [n + 1], sources: [edges], columns)        in-edges of owned vertices, by ascending source id
    push    (offsets: [n + g + 1], targets: [edges], columns)    the same edges by source; targets are owned
    own     (ids: [n + g] or [0] where id = local id, in_offsets: [n + 1], out_degrees: [n], out_edges)
    fields  (status: [n], states: ([n], ...))                    what a vertex keeps
    outbox  (sent: [n + g], records)                             what it says; one pair to read, one to write
    read    (sent as bits: [(n + g) / 8], records)               the outbox as a pull reads it: bits stay in cache
    records, slots: one array of [n + g] or [n], of structures where there are several fields
    inbox   (has: [n], slots: ([n], ...))                        messages combined by a push
    boxes   (offsets: [n + 1], arrays), or (has, slots) where messages are combined
    mail    (count: [1], kinds: [room], targets: [room], senders: [room], array: [room], ...)
    given   ([n], ...) or ()                                     contributions kept apart (deterministic runs)

An inbox is asked for at random, once a message, so `has` holds all that a push must know of its target: HEARD, and
UNLISTED where a first message need not list it, since it is active and will run anyway, or has retired and will not.
What is sent to who has retired is combined, and never read: to ask would cost more. Lists of targets have room for one
more.

A loop over vertices returns a counters (ran, active, senders, sent_edges) and the aggregators' contributions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ACTIVE",
    "EVERYBODY",
    "HALTED",
    "HEARD",
    "MOST",
    "NOBODY",
    "ONE",
    "PIECE",
    "RETIRED",
    "SOME",
    "UNLISTED",
    "Functions",
    "Loop",
    "apply_bins",
    "best_of_withheld",
    "combine_mail",
    "commit",
    "compute_listed",
    "gather_combined",
    "gather_listed",
    "read_direct",
    "run",
    "scatter_binned",
    "scatter_direct",
]

ACTIVE, HALTED, RETIRED = 0, 1, 2
HEARD, UNLISTED = np.uint8(1), np.uint8(2)
NOBODY, SOME, MOST, EVERYBODY = 0, 1, 2, 3
ONE, PIECE = np.uint64(1), np.uint64(64)
AHEAD = 8
THREE, SEVEN = np.uint32(3), np.uint32(7)

Loop = Callable[..., Any]


class Functions(NamedTuple):
    """A program's functions and its arrays' loads and stores, compiled.

    `deliver(job, record, ids, source, target, columns)` gives (passes, slots); (passes, message) where they are
    listed. Of a monotone program the first slot is the key: `known(states, v)` is the best that v has heard,
    `is_better(key, other)` is strict, and `matters(states, v, slots)` tells whether v would take a message;
    messages of other programs always matter. A key is made of the record's field `said`, and the edge column
    `added` where one is. `scatter` and `compute_each` are `scatter_direct` and `compute_listed`;
    `conclude(values, total, zero)` gives the aggregators' next values.
    """

    compute: Loop
    deliver: Loop
    lift: Loop
    merge: Loop
    contribute: Loop
    edges_of: Loop
    load_states: Loop
    store_states: Loop
    load_record: Loop
    store_record: Loop
    load_columns: Loop
    load_slots: Loop
    store_slots: Loop
    load_message: Loop
    store_message: Loop
    as_list: Loop
    box: Loop
    run: Loop
    commit: Loop
    stops_early: bool
    may_retire: bool
    known: Loop
    is_better: Loop
    matters: Loop
    said: int | None
    added: int | None
    scatter: Loop
    compute_each: Loop
    conclude: Loop
    is_push_cheaper: Loop
    prefetch: Loop


def run(f: Functions) -> Loop:
    """Compute one vertex; write nothing but mail."""
    compute, load_states, edges_of = f.compute, f.load_states, f.edges_of

    def run(v, job, own, fields, messages, has, mail):
        env, params, aggregates = job
        ids, in_offsets, out_degrees, out_edges = own
        vid = np.int64(ids[v]) if len(ids) > 0 else np.int64(v)
        vertex = (vid, np.int64(out_degrees[v]), np.int64(in_offsets[v + ONE] - in_offsets[v]))
        edges = edges_of(out_edges, v)
        return compute(env, params, aggregates, vertex, load_states(fields[1], v), messages, has, edges, mail)

    return run


def commit(f: Functions) -> Loop:
    """Write what a vertex decided; return its share of the counters and the total with its contributions."""
    store_states, store_record, contribute = f.store_states, f.store_record, f.contribute

    def commit(v, outcome, own, fields, outbox, given, total):
        state, flags, record, contribution = outcome
        store_states(fields[1], v, state)
        status = np.uint8(2) if flags & 2 else np.uint8(flags & 1)
        fields[0][v] = status
        is_sender = (flags & 4) != 0 and own[2][v] > 0
        if is_sender:
            store_record(outbox[1], v, record)
            outbox[0][v] = 1
        return status == 0, is_sender, contribute(given, v, total, contribution)

    return commit


def gather_combined(f: Functions) -> Loop:
    """Pull: owned vertices begin..end combine their in-neighbours' records and compute.

    `mode` says who sent:

    NOBODY
    SOME       the positions of their edges are gathered first, piece by piece, without a branch to mispredict
    MOST       or where few hits may be enough: each is asked when it is met
    EVERYBODY  with an out-edge: nobody is asked

    `places` is scratch of `PIECE` positions.
    """
    deliver, merge, load_record, load_columns = f.deliver, f.merge, f.load_record, f.load_columns
    run, commit, stops_early = f.run, f.commit, f.stops_early

    def gather_combined(begin, end, job, pull, own, fields, read, write, empty, places, mode, given, total):
        offsets, sources, columns = pull
        bits, records = read
        ids = own[0]
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            if fields[0][v] == 2:
                continue
            slots = empty
            has = False
            e = offsets[v]
            last = offsets[v + ONE] if mode != NOBODY else e
            while mode != SOME and e < last and not has:
                s = sources[e]
                if mode == EVERYBODY or (bits[s >> THREE] >> (s & SEVEN)) & 1:
                    passes, value = deliver(job, load_record(records, s), ids, s, v, load_columns(columns, e))
                    if passes:
                        slots = merge(empty, False, value)
                        has = True
                e += ONE
            while e < last and not stops_early:
                stop = min(last, e + PIECE) if mode == SOME else last
                if mode == SOME:
                    count = 0
                    for i in range(e, stop):
                        s = sources[i]
                        places[count] = i
                        count += (bits[s >> THREE] >> (s & SEVEN)) & 1
                    for k in range(count):
                        i = places[k]
                        s = sources[i]
                        passes, value = deliver(
                            job, load_record(records, s), ids, s, v, load_columns(columns, i)
                        )
                        if passes:
                            slots = merge(slots, has, value)
                            has = True
                elif mode == EVERYBODY:
                    for i in range(e, stop):
                        s = sources[i]
                        passes, value = deliver(
                            job, load_record(records, s), ids, s, v, load_columns(columns, i)
                        )
                        if passes:
                            slots = merge(slots, True, value)
                else:
                    for i in range(e, stop):
                        s = sources[i]
                        if (bits[s >> THREE] >> (s & SEVEN)) & 1:
                            passes, value = deliver(
                                job, load_record(records, s), ids, s, v, load_columns(columns, i)
                            )
                            if passes:
                                slots = merge(slots, True, value)
                e = stop
            if not has and fields[0][v] != 0:
                continue
            outcome = run(v, job, own, fields, slots, has, ())
            is_active, is_sender, total = commit(v, outcome, own, fields, write, given, total)
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(own[2][v])
        return (ran, active, senders, sent_edges), total

    return gather_combined


def best_of_withheld(begin, end, withheld, status, values, out_degrees, takes_min):
    """Find the best value withheld among vertices begin..end; who has retired withholds nothing any more.

    Returns how many withhold a value, how many edges they would send it along, and the best.
    """
    count, num_edges = 0, np.int64(0)
    best = values[0]
    for v in range(begin, end):
        if status[v] == 2:
            withheld[v] = 0
        if withheld[v] != 0:
            value = values[v]
            if count == 0 or (value < best if takes_min else value > best):
                best = value
            count += 1
            num_edges += np.int64(out_degrees[v])
    return count, num_edges, best


def gather_listed(f: Functions) -> Loop:
    """Pull: owned vertices begin..end list their in-neighbours' messages in `scratch` and compute."""
    deliver, load_record, load_columns = f.deliver, f.load_record, f.load_columns
    store_message, as_list, run, commit = f.store_message, f.as_list, f.run, f.commit

    def gather_listed(begin, end, job, pull, own, fields, read, write, scratch, mode, given, total):
        offsets, sources, columns = pull
        bits, records = read
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for v in range(begin, end):
            if fields[0][v] == 2:
                continue
            count = 0
            if mode != NOBODY:
                for e in range(offsets[v], offsets[v + ONE]):
                    s = sources[e]
                    if mode == EVERYBODY or (bits[s >> THREE] >> (s & SEVEN)) & 1:
                        passes, message = deliver(
                            job, load_record(records, s), own[0], s, v, load_columns(columns, e)
                        )
                        if passes:
                            store_message(scratch, count, message)
                            count += 1
            if count == 0 and fields[0][v] != 0:
                continue
            outcome = run(v, job, own, fields, as_list(0, count, scratch), count > 0, ())
            is_active, is_sender, total = commit(v, outcome, own, fields, write, given, total)
            ran += 1
            active += is_active
            senders += is_sender
            if is_sender:
                sent_edges += np.int64(own[2][v])
        return (ran, active, senders, sent_edges), total

    return gather_listed


def scatter_direct(f: Functions) -> Loop:
    """Push on one thread: senders combine into their targets' inboxes; new targets are listed in `touched`."""
    deliver, merge, load_record, load_columns = f.deliver, f.merge, f.load_record, f.load_columns
    load_slots, store_slots, matters, prefetch = f.load_slots, f.store_slots, f.matters, f.prefetch

    def scatter_direct(list_of_senders, job, push, own, fields, read, inbox, touched):
        offsets, targets, columns = push
        has, slots = inbox
        count = 0
        num_senders = len(list_of_senders)
        for i in range(num_senders):
            if i + AHEAD < num_senders:  # rows lie anywhere: the next are on their way before they are walked
                prefetch(targets, offsets[list_of_senders[i + AHEAD]])
            if i + AHEAD + AHEAD < num_senders:
                prefetch(offsets, list_of_senders[i + AHEAD + AHEAD])
            s = list_of_senders[i]
            record = load_record(read[1], s)
            for e in range(offsets[s], offsets[s + ONE]):
                t = targets[e]
                passes, value = deliver(job, record, own[0], s, t, load_columns(columns, e))
                if passes and matters(fields[1], t, value):
                    known = has[t]
                    store_slots(slots, t, merge(load_slots(slots, t), (known & HEARD) != 0, value))
                    has[t] = known | HEARD
                    touched[count] = t
                    count += known == 0
        return count

    return scatter_direct


def scatter_binned(f: Functions) -> Loop:
    """Push, first half, one of many threads: senders write (target, value) into bins of nearby targets."""
    deliver, load_record, load_columns = f.deliver, f.load_record, f.load_columns
    store_slots, matters, may_retire, prefetch = f.store_slots, f.matters, f.may_retire, f.prefetch

    def scatter_binned(
        list_of_senders, job, push, own, fields, read, shift, counts, bin_targets, bin_slots, capacity
    ):
        offsets, targets, columns = push
        num_senders = len(list_of_senders)
        for i in range(num_senders):
            if i + AHEAD < num_senders:
                prefetch(targets, offsets[list_of_senders[i + AHEAD]])
            s = list_of_senders[i]
            record = load_record(read[1], s)
            for e in range(offsets[s], offsets[s + ONE]):
                t = targets[e]
                if may_retire and fields[0][t] == 2:
                    continue
                passes, value = deliver(job, record, own[0], s, t, load_columns(columns, e))
                if passes and matters(fields[1], t, value):
                    b = t >> shift
                    at = b * capacity + counts[b]
                    bin_targets[at] = t
                    store_slots(bin_slots, at, value)
                    counts[b] += np.uint64(1)

    return scatter_binned


def apply_bins(f: Functions) -> Loop:
    """Push, second half: one thread combines one bin's values into its targets' inboxes."""
    merge, load_slots, store_slots = f.merge, f.load_slots, f.store_slots

    def apply_bins(begin, end, bin_targets, bin_slots, inbox, touched):
        has, slots = inbox
        count = 0
        for at in range(begin, end):
            t = bin_targets[at]
            value = load_slots(bin_slots, at)
            known = has[t]
            store_slots(slots, t, merge(load_slots(slots, t), (known & HEARD) != 0, value))
            has[t] = known | HEARD
            touched[count] = t
            count += known == 0
        return count

    return apply_bins


def compute_listed(f: Functions) -> Loop:
    """Compute the listed vertices from their inboxes, and empty these; list who sent and who stays active."""
    load_slots, run, commit = f.load_slots, f.run, f.commit

    def compute_listed(
        vertices, job, own, fields, inbox, empty, write, given, total, new_senders, new_active
    ):
        has, slots = inbox
        ran, active, senders, sent_edges = 0, 0, 0, np.int64(0)
        for i in range(len(vertices)):
            v = vertices[i]
            has_messages = (has[v] & HEARD) != 0
            messages = load_slots(slots, v) if has_messages else empty
            outcome = run(v, job, own, fields, messages, has_messages, ())
            is_active, is_sender, total = commit(v, outcome, own, fields, write, given, total)
            has[v] = 0 if fields[0][v] == 1 else UNLISTED
            ran += 1
            if is_active:
                new_active[active] = v
                active += 1
            if is_sender:
                new_senders[senders] = v
                senders += 1
                sent_edges += np.int64(own[2][v])
        return (ran, active, senders, sent_edges), total

    return compute_listed


def read_direct(f: Functions) -> Loop:
    """Owned vertices begin..end read their messages from `boxes` and compute; what they send goes to `mail`.

    A vertex that overflows `mail` is left as it was, and its position is returned: the engine makes room and
    calls again from there. Where everything fitted, the position is `end`.
    """
    box, run, commit = f.box, f.run, f.commit

    def read_direct(begin, end, job, own, fields, boxes, empty, write, mail, given, total):
        ran, active = 0, 0
        for v in range(begin, end):
            if fields[0][v] == 2:
                continue
            has, messages = box(v, boxes, empty)
            if not has and fields[0][v] != 0:
                continue
            num_sent = mail[0][0]
            outcome = run(v, job, own, fields, messages, has, mail)
            if mail[0][0] > len(mail[1]):
                mail[0][0] = num_sent
                return v, (ran, active, 0, 0), total
            for i in range(num_sent, mail[0][0]):
                mail[3][i] = v
            is_active, _, total = commit(v, outcome, own, fields, write, given, total)
            ran += 1
            active += is_active
        return end, (ran, active, 0, 0), total

    return read_direct


def combine_mail(f: Functions) -> Loop:
    """Combine the messages of each target, given an order that brings equal targets together."""
    lift, merge, load_message, store_slots = f.lift, f.merge, f.load_message, f.store_slots

    def combine_mail(order, targets, messages, job, empty, out_targets, out_slots):
        count = -1
        slots = empty
        for i in range(len(order)):
            at = order[i]
            is_next = count < 0 or targets[at] != out_targets[count]
            if is_next:
                if count >= 0:
                    store_slots(out_slots, count, slots)
                count += 1
                out_targets[count] = targets[at]
                slots = empty
            slots = merge(slots, not is_next, lift(job[0], job[1], load_message(messages, at)))
        if count >= 0:
            store_slots(out_slots, count, slots)
        return count + 1

    return combine_mail
