"""Loops of first-arrival programs that go on after updates of their edges (`engine/cpu/arrivals.py`), on one core.

`levels` [n] int64 are the supersteps in which vertices act; below 0: not yet. It is one of `fields.states`. A vertex of
level s sends in superstep s, along all its edges, and at no other time.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import RETIRE
from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import load_row, store_row

__all__ = [
    "ACTS_AGAIN",
    "ACTS_NOW",
    "AS_BEFORE",
    "LOST",
    "WAITS",
    "list_receivers",
    "next_arrivals",
    "settle_listed",
]

AS_BEFORE, ACTS_AGAIN, ACTS_NOW, LOST, WAITS = range(5)
"""What becomes of a vertex in a superstep: it acts at another time, or acted; acts then as before; acts then, but did
not before; acted then, but does no more; has no level, and gets none."""


def settle_listed(f: Functions) -> Loop:
    """Let listed vertices, which have no level below this superstep, pull from those that sent in the one before.

    Levels below this superstep are final. Where compute() makes of the messages that a vertex acts, it acts; else one
    that acted in this superstep has the states of `first_states` again. `outcomes` gets what became of each.
    """
    deliver, merge, compute_vertex = f.deliver, f.merge, f.compute_vertex

    def settle_listed(
        vertices, arguments, in_edges, owned, fields, first_states, records, levels, empty, outcomes
    ):  # fmt: skip
        now = arguments.superstep
        for i in range(len(vertices)):
            v = vertices[i]
            before = levels[v]
            slots = empty
            has = False
            for e in range(in_edges.offsets[v], in_edges.stops[v]):
                s = in_edges.ends[e]
                if levels[s] == now - 1:
                    columns = load_row(in_edges.columns, e)
                    passes, value = deliver(arguments, load_row(records, s), owned.ids, s, v, columns)
                    if passes:
                        slots = merge(v, slots, has, value)
                        has = True
            acts = False
            if has:
                kept = load_row(fields.states, v)
                store_row(fields.states, v, load_row(first_states, v))
                outcome = compute_vertex(v, arguments, owned, fields, slots, True, ())
                acts = (outcome[1] & RETIRE) != 0
                store_row(fields.states, v, outcome[0] if acts else kept)
            if acts:
                outcomes[i] = ACTS_AGAIN if before == now else ACTS_NOW
            elif before == now:
                store_row(fields.states, v, load_row(first_states, v))
                outcomes[i] = LOST
            else:
                outcomes[i] = AS_BEFORE if before > now else WAITS

    return settle_listed


def list_receivers(f: Functions) -> Loop:
    """List the targets of some vertices' edges that have no level up to `now`, each once. Returns how many.

    `marks` [n] is 0 everywhere; those listed are marked.
    """

    def list_receivers(senders, out_edges, levels, now, marks, found):
        count = 0
        for i in range(len(senders)):
            s = senders[i]
            for e in range(out_edges.offsets[s], out_edges.stops[s]):
                t = out_edges.ends[e]
                if marks[t] == 0 and (levels[t] < 0 or levels[t] > now):
                    marks[t] = 1
                    found[count] = t
                    count += 1
        return count

    return list_receivers


def next_arrivals(f: Functions) -> Loop:
    """Find for each of some vertices the least level of an in-neighbour, of those from `least` on; -1 without any."""

    def next_arrivals(vertices, in_edges, levels, least, found):
        for i in range(len(vertices)):
            v = vertices[i]
            best = np.int64(-1)
            for e in range(in_edges.offsets[v], in_edges.stops[v]):
                level = levels[in_edges.ends[e]]
                if level >= least and (best < 0 or level < best):
                    best = level
            found[i] = best

    return next_arrivals
