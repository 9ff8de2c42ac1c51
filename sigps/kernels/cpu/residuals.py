"""Loops of a declared contraction that is linear, whose changes are passed on (`engine/cpu/residuals.py`).

    x(v) = own[v] + factor[v] * sum { message(record(u)) : (u, v) an edge }

x so far is the one state. `records` are what vertices last passed on, of which one more of a state makes `share[v]`
more. `untaken` [cores * n] is by what the sum of a vertex's messages is more than the one that its state was made of,
in parts, of which each core adds to its own alone: that of v is `untaken[core * n + v]`.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.functions import ONE, Functions, Loop
from sigps.native.primitives import has_fault, load_row

__all__ = ["add_up", "find_changed", "find_terms", "pass_on"]


def find_terms(f: Functions) -> Loop:
    """Find `own`, `factor` and `share` of vertices begin..end, by what compute() makes of sums of 0 and of 1.

    Vertices without in-edges take their final state, and pass that on: none has a factor but 1.
    """
    compute_vertex = f.compute_vertex

    def find_terms(begin, end, arguments, owned, fields, records, own, factor, share):
        values, sent = fields.states[0], records[0]
        for v in range(begin, end):
            has = owned.in_offsets[v + ONE] > owned.in_offsets[v]
            nothing = compute_vertex(v, arguments, owned, fields, (np.float64(0.0),), has, ())
            own[v], factor[v], share[v] = nothing[0][0], 1.0, 0.0
            if has:
                one = compute_vertex(v, arguments, owned, fields, (np.float64(1.0),), has, ())
                factor[v] = one[0][0] - own[v]
                if owned.out_degrees[v] > 0 and factor[v] != 0.0:
                    share[v] = (one[2][0] - nothing[2][0]) / factor[v]
            else:
                values[v] = own[v]
                sent[v] = nothing[2][0]
            if has_fault():
                break

    return find_terms


def add_up(f: Functions) -> Loop:
    """Pull: find what vertices begin..end have not taken, in the first part.

    Returns it, absolute and added up, and how many edges were read.
    """
    deliver = f.deliver

    def add_up(begin, end, arguments, in_edges, owned, states, records, own, factor, untaken):
        ids, values, edges, left = owned.ids, states[0], np.int64(0), 0.0
        for v in range(begin, end):
            total = 0.0
            for e in range(in_edges.offsets[v], in_edges.stops[v]):
                s = in_edges.ends[e]
                _, value = deliver(arguments, load_row(records, s), ids, s, v, load_row(in_edges.columns, e))
                total += value[0]
            edges += np.int64(in_edges.stops[v] - in_edges.offsets[v])
            total -= (values[v] - own[v]) / factor[v]
            untaken[v] = total
            left += abs(total)
        return left, edges

    return add_up


def pass_on(f: Functions) -> Loop:
    """Let vertices begin..end take what they have not taken, where it is more than `least` when their turn comes.

    A state takes it `relaxation` times, and what follows from that is added to what out-neighbours have not taken, in
    the part of this core.

    Returns what was not taken, absolute and added up as it was found, and the most; how many took it, and along how
    many edges.
    """
    deliver = f.deliver

    def pass_on(
        begin, end, core, cores, least, relaxation, arguments, out_edges, owned, states, records, factor, share, untaken
    ):  # fmt: skip
        ids, values, sent, n = owned.ids, states[0], records[0], len(factor)
        mine, left, most, taken, edges = np.int64(core) * n, 0.0, 0.0, np.int64(0), np.int64(0)
        for v in range(begin, end):
            total = untaken[v]
            for other in range(1, cores):
                total += untaken[other * n + np.int64(v)]
            size = abs(total)
            left += size
            if not size > least:
                continue
            most = max(most, size)
            total *= relaxation
            untaken[mine + np.int64(v)] -= total
            change = factor[v] * total
            values[v] += change
            taken += 1
            change *= share[v]
            sent[v] += change
            edges += np.int64(out_edges.stops[v] - out_edges.offsets[v])
            for e in range(out_edges.offsets[v], out_edges.stops[v]):
                t = out_edges.ends[e]
                _, value = deliver(arguments, (change,), ids, v, t, load_row(out_edges.columns, e))
                untaken[mine + np.int64(t)] += value[0]
        return left, most, taken, edges

    return pass_on


def find_changed(f: Functions) -> Loop:
    """Return the first vertex from `begin` to `end` for which compute() now counts a change; `end` where none does."""
    compute_vertex = f.compute_vertex

    def find_changed(begin, end, cores, arguments, owned, fields, own, factor, untaken):
        values, n = fields.states[0], len(factor)
        for v in range(begin, end):
            total = untaken[v]
            for other in range(1, cores):
                total += untaken[other * n + np.int64(v)]
            total += (values[v] - own[v]) / factor[v]
            has = owned.in_offsets[v + ONE] > owned.in_offsets[v]
            outcome = compute_vertex(v, arguments, owned, fields, (total,), has, ())
            if outcome[3][0] != 0 or has_fault():
                return v
        return end

    return find_changed
