"""Several runs of one program side by side on one CPU core: k lanes, each a run of its own.

Of a vertex there is a bit a lane that says whether it is active, sent, or has a message there, and so a superstep walks
the edges of the vertices that sent in some lane once, for all lanes. Messages combine in the order of a vertex's
in-edges, whether they are pulled or pushed: senders are taken in ascending order. What is kept is `LaneMemory`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cpu.arguments import HALT, RETIRE, SENT, LoopArguments
from sigps.kernels.cpu.functions import Functions, Loop
from sigps.kernels.direction import PULL, PUSH, choose_direction
from sigps.native.kernel import compiled
from sigps.native.primitives import (
    count_bits,
    has_fault,
    keep_fault,
    load_row,
    lowest_bit,
    prefetch,
    scratch_rows,
    store_row,
)

__all__ = ["combine_lanes", "compute_lanes", "gather_lanes", "part_lanes", "run_lanes", "scatter_lanes"]

ZERO, ONE = np.uint64(0), np.uint64(1)

AHEAD = np.uint64(8)
"""How many edges before its turn a record is prefetched."""

DENSE = 4
"""Where a message is in one of so many lanes or more, all lanes are computed, and those that have one are stored.

Vectors are computed so only where there is one in all.
"""


def all_lanes(num_lanes: int) -> np.uint64:
    """Return the mask of so many lanes."""
    return np.uint64((1 << num_lanes) - 1)


def combine_lanes(f: Functions) -> Loop:
    """Combine the messages from s to t into t's slots, at `at`, from s's records, at `r`; return where one passed.

    `lanes` are those in which s sent and t takes it; `before` those in which t has a message already. Either the slots
    or the records are an array of the caller's own: then stores do not seem to change what is loaded next, and a row of
    lanes becomes a few vector operations.
    """
    deliver, merge, matters, k = f.deliver, f.merge, f.matters, f.num_lanes
    only_arrives = f.only_arrives
    every = all_lanes(k)
    is_dense, dense = f.passes_always and not f.stops_early, 1 if f.has_vectors else DENSE
    drops_some = not f.may_retire

    def deliver_in(lane, s, t, columns, records, r, arguments, owned, params, counts):
        superstep, given = counts.superstep[lane], load_row(params, lane)
        now = LoopArguments(superstep, arguments.num_vertices, arguments.num_edges, given, ())
        return deliver(now, load_row(records, r + lane), owned.ids, s, t, columns)

    def combine_lanes(
        lanes, before, s, t, columns, records, r, slots, at, states, arguments, owned, params, counts
    ):  # fmt: skip
        if only_arrives:
            return lanes
        if is_dense and count_bits(lanes) * dense >= k:
            if lanes == every and before == every and not drops_some:
                for lane in range(k):
                    _, value = deliver_in(lane, s, t, columns, records, r, arguments, owned, params, counts)  # type: ignore[no-untyped-call]
                    store_row(slots, at + lane, merge(t, load_row(slots, at + lane), True, value))
                return every
            arrived = ZERO
            for lane in range(k):
                _, value = deliver_in(lane, s, t, columns, records, r, arguments, owned, params, counts)  # type: ignore[no-untyped-call]
                old = load_row(slots, at + lane)
                new = merge(t, old, ((before >> np.uint64(lane)) & ONE) != ZERO, value)
                takes = ((lanes >> np.uint64(lane)) & ONE) != ZERO
                if drops_some:
                    takes = takes & matters(states, t * k + lane, value)
                    arrived |= np.uint64(takes) << np.uint64(lane)
                store_row(slots, at + lane, new if takes else old)
            return arrived if drops_some else lanes
        arrived = ZERO
        while lanes != ZERO:
            lane = lowest_bit(lanes)
            bit = lanes & (ZERO - lanes)
            lanes ^= bit
            passes, value = deliver_in(lane, s, t, columns, records, r, arguments, owned, params, counts)  # type: ignore[no-untyped-call]
            if passes and matters(states, t * k + lane, value):
                merged = merge(t, load_row(slots, at + lane), (before & bit) != ZERO, value)
                store_row(slots, at + lane, merged)
                arrived |= bit
        return arrived

    return combine_lanes


def scatter_lanes(f: Functions) -> Loop:
    """Push: senders combine into their targets' slots, all lanes of an edge at once; targets are noted as running."""
    combine, stops_early, k = combine_lanes(f), f.stops_early, f.num_lanes

    def scatter_lanes(alive, arguments, edges, owned, memory, masks, sets, params, counts):
        offsets, targets, slots = edges.offsets, edges.ends, memory.slots
        records = scratch_rows(memory.records, k)
        for w in range(len(sets.senders)):
            word = sets.senders[w]
            while word != ZERO:
                s = w * 64 + lowest_bit(word)
                word &= word - ONE
                sent = masks.sent[s] & alive
                for lane in range(k):
                    store_row(records, lane, load_row(memory.records, s * k + lane))
                for e in range(offsets[s], offsets[s + 1]):
                    t = targets[e]
                    before = masks.has[t]
                    lanes = sent & ~masks.retired[t]
                    if stops_early:
                        lanes &= ~before
                    if lanes != ZERO:
                        columns = load_row(edges.columns, e)
                        arrived = combine(
                            lanes, before, s, t, columns, records, 0, slots, t * k, memory.states, arguments, owned,
                            params, counts,
                        )  # fmt: skip
                        masks.has[t] = before | arrived
                        if arrived != ZERO:
                            sets.running[t >> 6] |= ONE << np.uint64(t & 63)

    return scatter_lanes


def gather_lanes(f: Functions) -> Loop:
    """Pull: all vertices combine what their in-neighbours sent; those that got something are noted as running."""
    combine, stops_early, k = combine_lanes(f), f.stops_early, f.num_lanes
    has_record = f.has_record

    def gather_lanes(alive, arguments, edges, owned, memory, masks, sets, params, counts):
        offsets, sources, records = edges.offsets, edges.ends, memory.records
        slots = scratch_rows(memory.slots, k)
        for v in range(len(masks.has)):
            wanted = alive & ~masks.retired[v]
            arrived = ZERO
            if wanted != ZERO:
                last = offsets[v + 1]
                for e in range(offsets[v], last):
                    if has_record:
                        ahead = e + AHEAD
                        if ahead < last:
                            prefetch(records[0], sources[ahead] * k)
                    s = sources[e]
                    lanes = masks.sent[s] & wanted
                    if lanes != ZERO:
                        columns = load_row(edges.columns, e)
                        arrived |= combine(
                            lanes, arrived, s, v, columns, records, s * k, slots, 0, memory.states, arguments, owned,
                            params, counts,
                        )  # fmt: skip
                        if stops_early:
                            wanted &= ~arrived
                            if wanted == ZERO:
                                break
            if arrived != ZERO:
                for lane in range(k):
                    store_row(memory.slots, v * k + lane, load_row(slots, lane))
                masks.has[v] = arrived
                sets.running[v >> 6] |= ONE << np.uint64(v & 63)

    return gather_lanes


def compute_lanes(f: Functions) -> Loop:
    """Compute the vertices that are noted as running, in all lanes in which they are active or have a message.

    Afterwards those are noted that are active or sent in some lane. `counts` and `totals` are added to. Returns the
    out-edges of the vertices that sent in some lane, how often a vertex ran, and how many vertices did.
    """
    compute, edges_of, fold, k = f.compute, f.edges_of, f.contribute, f.num_lanes

    def compute_lanes(alive, arguments, owned, memory, masks, sets, empty, params, values, totals, counts):
        num_vertices, num_edges = arguments.num_vertices, arguments.num_edges
        sent_edges, num_ran, num_visits = np.int64(0), 0, 0
        for w in range(len(sets.running)):
            word = sets.running[w]
            stays, senders = ZERO, ZERO
            while word != ZERO:
                v = w * 64 + lowest_bit(word)
                vertex_bit = word & (ZERO - word)
                word ^= vertex_bit
                arrived = masks.has[v]
                lanes = (arrived | masks.active[v]) & alive
                degree = np.int64(owned.out_degrees[v])
                vid = np.int64(owned.ids[v]) if len(owned.ids) > 0 else np.int64(v)
                vertex = (vid, degree, np.int64(owned.in_offsets[v + 1] - owned.in_offsets[v]))
                edges = edges_of(owned.walked, v)
                active, sent, retired = ZERO, ZERO, ZERO
                num_visits += 1
                while lanes != ZERO:
                    lane = lowest_bit(lanes)
                    bit = lanes & (ZERO - lanes)
                    lanes ^= bit
                    at = v * k + lane
                    has = (arrived & bit) != ZERO
                    messages = load_row(memory.slots, at) if has else empty
                    env = (counts.superstep[lane], num_vertices, num_edges)
                    outcome, fault = compute(
                        env,
                        load_row(params, lane),
                        load_row(values, lane),
                        vertex,
                        load_row(memory.states, at),
                        messages,
                        has,
                        edges,
                        (),
                    )
                    keep_fault(v, fault)
                    state, flags, record, contribution = outcome
                    store_row(memory.states, at, state)
                    if flags & RETIRE:
                        retired |= bit
                    elif (flags & HALT) == 0:
                        active |= bit
                        counts.active[lane] += 1
                    if (flags & SENT) != 0 and degree > 0:
                        sent |= bit
                        store_row(memory.records, at, record)
                        counts.messages[lane] += degree
                    counts.ran[lane] += 1
                    num_ran += 1
                    store_row(totals, lane, fold((), v, load_row(totals, lane), contribution))
                masks.has[v], masks.active[v], masks.sent[v] = ZERO, active, sent
                masks.retired[v] |= retired
                if active != ZERO:
                    stays |= vertex_bit
                if sent != ZERO:
                    senders |= vertex_bit
                    sent_edges += degree
            sets.running[w], sets.senders[w] = stays, senders
        return sent_edges, num_ran, num_visits

    return compute_lanes


def conclude_lanes(f: Functions) -> Loop:
    """End a superstep of each lane; return the lanes that go on. If no vertex ran there was none, but by `limits`."""
    conclude, k = f.conclude, f.num_lanes

    def conclude_lanes(alive, row, limits, values, totals, identity, counts, account):
        lanes = alive
        while lanes != ZERO:
            lane = lowest_bit(lanes)
            bit = lanes & (ZERO - lanes)
            lanes ^= bit
            account.ran[row * k + lane] = counts.ran[lane]
            account.messages[row * k + lane] = counts.messages[lane]
            is_counted = counts.ran[lane] > 0 or (limits.counts_idle & bit) != ZERO
            if is_counted:
                store_row(values, lane, conclude(load_row(values, lane), load_row(totals, lane), identity))
                store_row(totals, lane, identity)
                account.counted[row * k + lane] = 1
                counts.superstep[lane] += 1
            if (
                not is_counted
                or counts.active[lane] + counts.messages[lane] == 0
                or counts.superstep[lane] >= limits.end
            ):
                alive ^= bit
        return alive

    return conclude_lanes


def run_lanes(f: Functions) -> Loop:
    """Run supersteps of the lanes `alive` until each has ended, or by `limits`; `account` is filled, a row a superstep.

    `sent_edges` is what the last call returned. Returns how many rows there are, the lanes that go on, the out-edges of
    the vertices that sent in the last superstep, and where messages were sent how often a vertex ran and how many did.
    """
    scatter, gather, compute, conclude = (
        scatter_lanes(f),
        gather_lanes(f),
        compute_lanes(f),
        conclude_lanes(f),
    )

    def run_lanes(
        alive, sent_edges, arguments, limits, out_edges, in_edges, owned, memory, masks, sets, empty, params, values,
        totals, identity, counts, account,
    ):  # fmt: skip
        row, work, runs, visits = 0, 0, 0, 0
        while alive != ZERO and row < len(account.direction) and work <= limits.most_work:
            direction = PULL
            if sent_edges > 0:
                direction = choose_direction(
                    sent_edges, 0, 0, len(in_edges.ends), len(masks.has), limits.pull_gain, limits.forced, True
                )  # fmt: skip
                if direction == PUSH:
                    scatter(alive, arguments, out_edges, owned, memory, masks, sets, params, counts)
                    work += sent_edges
                else:
                    gather(alive, arguments, in_edges, owned, memory, masks, sets, params, counts)
                    work += len(in_edges.ends)
            for w in range(len(sets.senders)):
                word = sets.senders[w]
                while word != ZERO:
                    masks.sent[w * 64 + lowest_bit(word)] = ZERO
                    word &= word - ONE
            lanes = alive
            while lanes != ZERO:
                lane = lowest_bit(lanes)
                lanes &= lanes - ONE
                counts.ran[lane], counts.active[lane], counts.messages[lane] = 0, 0, 0
            had_messages = sent_edges > 0
            sent_edges, num_ran, num_visits = compute(
                alive, arguments, owned, memory, masks, sets, empty, params, values, totals, counts
            )
            work += num_ran + len(sets.running)
            if had_messages:
                runs += num_ran
                visits += num_visits
            alive = conclude(alive, row, limits, values, totals, identity, counts, account)
            account.direction[row] = direction
            row += 1
            if has_fault():
                break
        return row, alive, sent_edges, runs, visits

    return run_lanes


@compiled
def part_lanes(values: NDArray[Any], width: int, num_lanes: int, apart: NDArray[Any]) -> None:
    """Write the first lanes of values, [n * width], one after the other: `apart` is [num_lanes * n].

    So many vertices at a time that the lines that they lie in, and those that are written, stay in cache.
    """
    n = values.size // width
    for first in range(0, n, 32):
        last = min(first + 32, n)
        for lane in range(num_lanes):
            for v in range(first, last):
                apart[lane * n + v] = values[v * width + lane]
