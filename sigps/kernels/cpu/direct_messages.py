"""Direct messages on CPU cores: vertices read those sent to them, and write out their own one by one."""

from __future__ import annotations

from sigps.kernels.cpu.arguments import ACTIVE, RETIRED
from sigps.kernels.cpu.functions import Functions, Loop
from sigps.native.primitives import keep_fault, load_row, store_row

__all__ = ["combine_messages", "compute_direct"]


def compute_direct(f: Functions) -> Loop:
    """Owned vertices begin..end read their messages, compute, and enqueue what they send in `queue`.

    `inbox` is an `Inbox`, or `MessageLists`. A vertex whose messages exceed the capacity of the queue is left as it
    was, and its position is returned: the engine passes a larger queue and calls again from there. Where all fitted,
    the position is `end`.
    """
    load_inbox, compute_vertex, commit = f.load_inbox, f.compute_vertex, f.commit

    def compute_direct(
        begin, end, arguments, owned, fields, inbox, empty, next_outbox, queue, contributions, total
    ):
        columns = (queue.size, queue.kinds, queue.targets, queue.senders, *queue.messages)
        ran, active = 0, 0
        for v in range(begin, end):
            if fields.status[v] == RETIRED:
                continue
            has, messages = load_inbox(v, inbox, empty)
            if not has and fields.status[v] != ACTIVE:
                continue
            num_sent = queue.size[0]
            outcome = compute_vertex(v, arguments, owned, fields, messages, has, columns)
            if queue.size[0] > len(queue.kinds):
                queue.size[0] = num_sent
                return v, (ran, active, 0, 0), total
            for i in range(num_sent, queue.size[0]):
                queue.senders[i] = v
            is_active, _, total = commit(
                v, outcome, arguments, owned, fields, next_outbox, contributions, total
            )
            ran += 1
            active += is_active
        return end, (ran, active, 0, 0), total

    return compute_direct


def combine_messages(f: Functions) -> Loop:
    """Combine the messages of each target, given an order that brings equal targets together.

    Fills out_targets and out_slots, and returns how many targets there are. `arguments` are those of the superstep
    that reads the messages.
    """
    lift, merge = f.lift, f.merge

    def combine_messages(order, targets, messages, arguments, empty, out_targets, out_slots):
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        count = -1
        slots = empty
        for i in range(len(order)):
            at = order[i]
            is_next = count < 0 or targets[at] != out_targets[count]
            if is_next:
                if count >= 0:
                    store_row(out_slots, count, slots)
                count += 1
                out_targets[count] = targets[at]
                slots = empty
            value, fault = lift(env, arguments.params, load_row(messages, at))
            keep_fault(-1, fault)  # of no vertex here
            slots = merge(-1, slots, not is_next, value)
        if count >= 0:
            store_row(out_slots, count, slots)
        return count + 1

    return combine_messages
