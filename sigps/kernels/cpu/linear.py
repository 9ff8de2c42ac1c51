"""Loops of linear programs whose residuals are pushed (`engine/cpu/linear.py`), on one core.

    x(v) = own[v] + factor[v] * sum { message(record[u] * x(u)) : (u, v) an edge }

`values` [n] are x so far, and `residuals` [n] what the right side has more than the left one.
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import keep_fault, load_row, store_row

__all__ = ["find_coefficients", "find_residuals", "push_residuals", "sweep_values"]


def find_coefficients(f: Functions) -> Loop:
    """Run compute() of listed vertices on a sum of messages, and write what comes of it.

    `after`, `sent` and `flags` [n], and `given`, ([n], ...), what vertices contribute to aggregators. Nothing is sent
    without out-edges, whatever was divided by their number.
    """
    compute = f.compute

    def find_coefficients(
        vertices, arguments, in_edges, owned, states, slots, aggregates, after, sent, flags, given
    ):  # fmt: skip
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        for i in range(len(vertices)):
            v = vertices[i]
            vid = np.int64(owned.ids[v]) if len(owned.ids) > 0 else np.int64(v)
            in_degree = np.int64(in_edges.stops[v] - in_edges.offsets[v])
            vertex = (vid, np.int64(owned.out_degrees[v]), in_degree)
            outcome, fault = compute(
                env, arguments.params, aggregates, vertex, load_row(states, v), slots, True, (), ()
            )
            keep_fault(v, fault)
            after[v] = outcome[0][0]
            flags[v] = outcome[1]
            sent[v] = outcome[2][0] if owned.out_degrees[v] > 0 else 0.0
            store_row(given, v, outcome[3])

    return find_coefficients


def find_residuals(f: Functions) -> Loop:
    """Make the residuals of listed vertices anew, by a pull of all their in-edges. Returns how many edges were read."""
    deliver = f.deliver

    def find_residuals(vertices, arguments, in_edges, owned, own, factor, record, values, residuals):
        read = np.int64(0)
        for i in range(len(vertices)):
            v = vertices[i]
            total = 0.0
            read += np.int64(in_edges.stops[v] - in_edges.offsets[v])
            for e in range(in_edges.offsets[v], in_edges.stops[v]):
                s = in_edges.ends[e]
                _, value = deliver(
                    arguments, (record[s] * values[s],), owned.ids, s, v, load_row(in_edges.columns, e)
                )
                total += value[0]
            residuals[v] = own[v] + factor[v] * total - values[v]
        return read

    return find_residuals


def push_residuals(f: Functions) -> Loop:
    """Push residuals that are more than `share` of `own`, until none is, first those in `queue` that came first.

    `queue` [n] is a ring that begins with `size` vertices, each marked in `waiting` [n]. Returns how many were pushed
    and how many edges that took: more than `most_edges` where it was given up.
    """
    deliver = f.deliver

    def push_residuals(
        queue, size, waiting, arguments, out_edges, owned, own, factor, record, values, residuals, share, most_edges
    ):  # fmt: skip
        room, head, left = len(queue), 0, size
        tail = size if size < room else 0
        pushed, read = np.int64(0), np.int64(0)
        while left > 0 and read <= most_edges:
            v = queue[head]
            head = head + 1 if head + 1 < room else 0
            left -= 1
            waiting[v] = 0
            change = residuals[v]
            if not abs(change) > share * own[v]:
                continue
            values[v] += change
            residuals[v] = 0.0
            pushed += 1
            read += np.int64(out_edges.stops[v] - out_edges.offsets[v]) + 1
            sent = (record[v] * change,)
            for e in range(out_edges.offsets[v], out_edges.stops[v]):
                t = out_edges.ends[e]
                _, value = deliver(arguments, sent, owned.ids, v, t, load_row(out_edges.columns, e))
                residuals[t] += factor[t] * value[0]
                if waiting[t] == 0 and abs(residuals[t]) > share * own[t]:
                    waiting[t] = 1
                    queue[tail] = t
                    tail = tail + 1 if tail + 1 < room else 0
                    left += 1
        return pushed, read

    return push_residuals


def sweep_values(f: Functions) -> Loop:
    """Let vertices 0 .. `count` - 1 in turn take the right side, of values as they are then (Gauss and Seidel).

    Returns the largest change, as a share of `own`. Residuals are others then, and not made here.
    """
    deliver = f.deliver

    def sweep_values(count, arguments, in_edges, owned, own, factor, record, values):
        largest = 0.0
        for v in range(np.uint64(count)):
            total = 0.0
            for e in range(in_edges.offsets[v], in_edges.stops[v]):
                s = in_edges.ends[e]
                _, value = deliver(
                    arguments, (record[s] * values[s],), owned.ids, s, v, load_row(in_edges.columns, e)
                )
                total += value[0]
            now = own[v] + factor[v] * total
            largest = max(largest, abs(now - values[v]) / own[v])
            values[v] = now
        return largest

    return sweep_values
