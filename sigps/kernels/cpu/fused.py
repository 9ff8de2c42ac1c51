"""fused supersteps on one CPU core, without the interpreter between them; `cpu.py` says what loops share.

lists     (senders, active, touched): [room], [room], [room + 1], and `counts`: [2], how many of the first two there are
limits    (superstep to stop before, most work of a superstep, most work of all, gain, pull_cost)
account   [supersteps, 3]: of each superstep how many ran, messages sent, and its work
"""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.loops import Functions, Loop

__all__ = ["is_push_cheaper", "run_fused"]


def is_push_cheaper(sender_edges, num_active, num_vertices, gain, pull_cost):
    """Tell whether a push that visits so many edges and active vertices is cheaper than a pull of `pull_cost`.

    A pull that asks nobody is cheaper than a list of nearly all vertices. `gain` 0: always push.
    """
    if gain == 0:
        return True
    if sender_edges == 0 and num_active * 4 > num_vertices * 3:
        return False
    return (sender_edges + num_active) * gain < pull_cost


def run_fused(f: Functions) -> Loop:
    """Push, compute, and make what was written readable, again and again.

    Ends before a superstep that is large or is better pulled, when nothing is active and nothing in flight, and where
    nobody ran: that is no superstep, but of a monotone program. `lists` then are those of the last superstep, and
    records are where they are read.

    Returns how many supersteps there were, the edges of the last senders, and the aggregators' values.
    """
    scatter, compute, conclude = f.scatter, f.compute_each, f.conclude
    load_record, store_record, cheaper = f.load_record, f.store_record, f.is_push_cheaper
    is_superstep = not f.may_retire

    def run_fused(
        job,
        limits,
        sent_edges,
        push,
        own,
        fields,
        read,
        write,
        inbox,
        empty,
        given,
        zero,
        lists,
        counts,
        account,
    ):
        (superstep, num_vertices, num_edges), params, values = job
        end, most, most_of_all, gain, pull_cost = limits
        senders, active, touched = lists
        done, sum_of_work = 0, np.int64(0)
        is_idle = False
        while superstep < end and done < len(account) and not is_idle:
            num_senders, num_active = counts[0], counts[1]
            work = sent_edges + num_active
            if work == 0 or work > most or sum_of_work > most_of_all:
                break
            if not cheaper(sent_edges, num_active, len(fields[0]), gain, pull_cost):
                break
            now = (superstep, num_vertices, num_edges), params, values
            heard = scatter(senders[:num_senders], now, push, own, fields, read, inbox, touched)
            for i in range(num_senders):
                read[0][senders[i]] = 0
            awake, total = compute(
                active[:num_active], now, own, fields, inbox, empty, write, given, zero, senders, active
            )
            woken, total = compute(
                touched[:heard], now, own, fields, inbox, empty, write, given, total, senders[awake[2] :],
                active[awake[1] :],
            )  # fmt: skip
            ran, num_active, num_senders = awake[0] + woken[0], awake[1] + woken[1], awake[2] + woken[2]
            sent_edges = awake[3] + woken[3]
            for i in range(num_senders):
                s = senders[i]
                write[0][s] = 0
                read[0][s] = 1
                store_record(read[1], s, load_record(write[1], s))
            counts[0], counts[1] = num_senders, num_active
            is_idle = ran == 0 and not is_superstep
            if not is_idle:
                if ran > 0:
                    values = conclude(values, total, zero)
                account[done, 0], account[done, 1], account[done, 2] = ran, sent_edges, work
                done += 1
                superstep += 1
            sum_of_work += work
        return done, sent_edges, values

    return run_fused
