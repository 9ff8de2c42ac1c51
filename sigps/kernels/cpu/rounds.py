"""Loops of programs in rounds that go on after updates of their edges (`engine/cpu/rounds.py`), on one core.

All vertices run in each superstep. What they had before it and have after it lies side by side: `before` and `after`
are states, ([n], ...) each, and `read` and `written` rows of records, [n]. Some arrays may be in several of these: the
record that is a state, and a state that stays. `was_sent` tells whether records of the superstep before are messages.

Records, ids and the ends of edges go by gid on one of several ranks, and vertices by their place behind `first`, a
uint32: the gid of the first one there. On one rank, where `first` is 0, both are the same.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import SENT
from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.kernels.cpu.grouped import choose_key, places_shift, put_key
from sigps.native.kernel import compiled
from sigps.native.primitives import keep_fault, load_row, store_row

__all__ = ["fold_contributions", "list_targets", "mark_owners", "run_again", "run_again_grouped"]


def run_again(f: Functions) -> Loop:
    """Let listed vertices combine their in-neighbours' records in the order of in-edges, and compute.

    `given` are what vertices contribute to aggregators, ([n], ...). Returns how many sent, and how many stay active.
    """
    deliver, merge, run_vertex = f.deliver, f.merge, _run_vertex(f)

    def run_again(
        vertices, first, arguments, in_edges, owned, before, after, read, written, was_sent, empty, given
    ):  # fmt: skip
        sent, active = 0, 0
        for i in range(len(vertices)):
            v = vertices[i]
            gid = first + v
            slots = empty
            has = False
            e = in_edges.offsets[v]
            last = in_edges.stops[v] if was_sent else e
            while e < last and not has:
                s = in_edges.ends[e]
                passes, value = deliver(
                    arguments, load_row(read, s), owned.ids, s, gid, load_row(in_edges.columns, e)
                )
                if passes:
                    slots = merge(gid, empty, False, value)
                    has = True
                e += ONE
            for k in range(e, last):
                s = in_edges.ends[k]
                passes, value = deliver(
                    arguments, load_row(read, s), owned.ids, s, gid, load_row(in_edges.columns, k)
                )
                if passes:
                    slots = merge(gid, slots, True, value)
            flags = run_vertex(v, gid, arguments, in_edges, owned, before, after, written, slots, has, given)
            sent += (flags & SENT) != 0
            active += (flags & ~SENT) == 0
        return sent, active

    return run_again


def run_again_grouped(f: Functions) -> Loop:
    """Let listed vertices find the key of most weight among their in-neighbours' messages, and compute.

    As `run_again`. `table` is a `KeyTable` for the longest row of in-edges, of which stamps above `stamp` are free.
    """
    deliver, run_vertex = f.deliver, _run_vertex(f)
    put, choose = put_key(f), choose_key(f)

    def run_again_grouped(
        vertices, first, arguments, in_edges, owned, before, after, read, written, was_sent, empty, given, table, stamp
    ):  # fmt: skip
        sent, active = 0, 0
        for i in range(len(vertices)):
            v = vertices[i]
            gid = first + v
            slots = empty
            count = 0
            if was_sent:
                begin, stop = in_edges.offsets[v], in_edges.stops[v]
                shift = places_shift(stop - begin)
                stamp += 1
                for e in range(begin, stop):
                    s = in_edges.ends[e]
                    passes, value = deliver(
                        arguments, load_row(read, s), owned.ids, s, gid, load_row(in_edges.columns, e)
                    )
                    if passes:
                        count = put(gid, table, stamp, shift, count, empty, value)
                slots = choose(table, count, empty)
            flags = run_vertex(
                v, gid, arguments, in_edges, owned, before, after, written, slots, count > 0, given
            )
            sent += (flags & SENT) != 0
            active += (flags & ~SENT) == 0
        return sent, active

    return run_again_grouped


def fold_contributions(f: Functions) -> Loop:
    """Return what the contributions of vertices 0 .. `count` - 1 come to, from `total`, in the order of vertices."""
    contribute = f.contribute

    def fold_contributions(count, given, total):
        for v in range(count):
            total = contribute(given, v, total, load_row(given, v))
        return total

    return fold_contributions


def _run_vertex(f: Functions) -> Loop:
    compute, edges_between = f.compute, f.edges_between

    def run_vertex(v, gid, arguments, in_edges, owned, before, after, written, slots, has, given):
        """Compute one vertex, and write what it has then; return its flags."""
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        vid = np.int64(owned.ids[gid]) if len(owned.ids) > 0 else np.int64(gid)
        in_degree = np.int64(in_edges.stops[v] - in_edges.offsets[v])
        vertex = (vid, np.int64(owned.out_degrees[v]), in_degree)
        outcome, fault = compute(
            env, arguments.params, arguments.aggregates, vertex, load_row(before, v), slots, has,
            edges_between(owned.walked, v), (),
        )  # fmt: skip
        keep_fault(gid, fault)
        state, flags, record, contribution = outcome
        store_row(written, gid, record)
        store_row(after, v, state)  # the last one: where a state is the record, it is one without any, too
        store_row(given, v, contribution)
        return flags

    return run_vertex


@compiled
def list_targets(senders, offsets, stops, ends, marks, found, count):
    """List the targets of some vertices' edges behind the first `count` of `found`, each once; return how many are.

    `marks` [n] uint8: those that are listed are marked.
    """
    for i in range(senders.size):
        s = senders[i]
        for e in range(offsets[s], stops[s]):
            t = ends[e]
            if marks[t] == 0:
                marks[t] = 1
                found[count] = t
                count += 1
    return count


@compiled
def mark_owners(num_rows, offsets, stops, ends, bounds, marks):
    """Mark for each rank the rows that have an end of its own; ends ascend in a row.

    `bounds` [ranks + 1] int64: those of rank r are bounds[r] .. bounds[r + 1] - 1. `marks` [ranks * num_rows] uint8.
    """
    for v in range(num_rows):
        rank = 0
        for e in range(offsets[v], stops[v]):
            end = np.int64(ends[e])
            while end >= bounds[rank + 1]:
                rank += 1
            marks[rank * num_rows + v] = 1
