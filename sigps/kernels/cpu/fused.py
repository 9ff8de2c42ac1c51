"""Fused supersteps on one CPU core: many small ones in one compiled loop, without the interpreter between them."""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import LoopArguments
from sigps.kernels.cpu.functions import Functions, Loop
from sigps.kernels.direction import PULL, choose_direction
from sigps.native.primitives import has_fault, load_row, store_row

__all__ = ["run_fused"]


def run_fused(f: Functions) -> Loop:
    """Push, compute, and make what was written readable, again and again.

    Ends by `limits` (FusedLimits), before a superstep that is better pulled, when nothing is active and nothing in
    flight, and where no vertex ran: that is no superstep, but of a monotone program. `lists` (FusedLists) then are
    those of the last superstep, and records are in `outbox`. `account` (FusedAccount) is filled.

    Returns how many supersteps there were, the edges of the last senders, and the aggregators' values.
    """
    scatter, compute, conclude = f.scatter_direct, f.compute_listed, f.conclude
    counts_idle = not f.may_retire

    def run_fused(
        arguments, limits, sent_edges, edges, owned, fields, outbox, next_outbox, inbox, empty, contributions,
        identity, lists, account,
    ):  # fmt: skip
        superstep, values = arguments.superstep, arguments.aggregates
        senders, active, touched, sizes = lists.senders, lists.active, lists.touched, lists.sizes
        done, sum_of_work = 0, np.int64(0)
        is_idle = False
        while superstep < limits.end and done < len(account.ran) and not is_idle:
            num_senders, num_active = sizes[0], sizes[1]
            work = sent_edges + num_active
            if work == 0 or work > limits.most_work or sum_of_work + work > limits.most_work_of_all:
                break
            direction = choose_direction(
                sent_edges, num_active, 0, limits.num_edges, len(fields.status), limits.pull_gain, limits.forced, True
            )  # fmt: skip
            if direction == PULL:
                break
            now = LoopArguments(
                superstep,
                arguments.num_vertices,
                arguments.num_edges,
                arguments.params,
                values,
            )
            num_touched = scatter(senders[:num_senders], now, edges, owned, fields, outbox, inbox, touched)
            for i in range(num_senders):
                outbox.sent[senders[i]] = 0
            (ran, num_active_left, num_senders, sent_edges), total = compute(
                active[:num_active], now, owned, fields, inbox, empty, next_outbox, contributions, identity,
                senders, active,
            )  # fmt: skip
            (woken, new_active, new_senders, new_edges), total = compute(
                touched[:num_touched], now, owned, fields, inbox, empty, next_outbox, contributions, total,
                senders[num_senders:], active[num_active_left:],
            )  # fmt: skip
            ran, num_active, num_senders = (
                ran + woken,
                num_active_left + new_active,
                num_senders + new_senders,
            )
            sent_edges += new_edges
            for i in range(num_senders):
                s = senders[i]
                next_outbox.sent[s] = 0
                outbox.sent[s] = 1
                store_row(outbox.records, s, load_row(next_outbox.records, s))
            sizes[0], sizes[1] = num_senders, num_active
            is_idle = ran == 0 and not counts_idle
            if not is_idle:
                if ran > 0:
                    values = conclude(values, total, identity)
                account.ran[done], account.messages[done], account.work[done] = ran, sent_edges, work
                done += 1
                superstep += 1
            sum_of_work += work
            if has_fault():
                break
        return done, sent_edges, values

    return run_fused
