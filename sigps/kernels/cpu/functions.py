"""A program's functions as loops call them, and the two that every loop over vertices calls for each.

The loops beside this file are plain Python, compiled around a program's functions (`native/kernel.py`): a factory takes
`Functions` and returns a loop. The loop has the schedule and nothing of the work; the functions do the work and see no
array. A loop runs on one thread, over a range or a list of vertices that the engine cuts; it writes only those
vertices, so no loop needs an atomic. What loops take and return is in `arguments.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sigps.kernels.cpu.arguments import ACTIVE, HALT, RETIRE, RETIRED, SENT, WROTE
from sigps.native.primitives import keep_fault, load_row, store_row

__all__ = ["ONE", "Functions", "Loop", "commit", "compute_vertex"]

ONE = np.uint64(1)

Loop = Callable[..., Any]


class Functions(NamedTuple):
    """What loops call of a program: functions that are compiled with them.

    `deliver(arguments, record, ids, source, target, columns)` gives (passes, slots), or (passes, message) where
    messages are listed. `load_inbox(v, inbox, empty)` gives (has, messages). `conclude(values, total, identity)` gives
    the aggregators' next values. `edges_between(walked, v)` gives what `edges_of` gives, of rows that lie anywhere:
    (begins, stops, gids, ids, columns). `arrange(v, arguments, messages)` gives the messages as compute() reads them,
    sorted by `key` where the program wants that. `is_more(slots, other)` tells which key is the more common one.
    `num_lanes` is how many runs a loop of `lanes.py` has side by side; `passes_always`, whether every edge lets its
    message pass; `has_record`, whether the outbox record has a field; `has_vectors`, whether slots have vectors;
    `only_arrives`, whether every message passes, and leaves nothing but that it came, not even a fault.

    In a monotone program the first slot is the key: `current(states, v)` is the current value of v, `is_better(key,
    other)` is strict, and `matters(states, v, slots)` tells whether a message would improve v; messages of other
    programs always matter. A key is made of the record's field `key_field`, and of the edge column `key_column` where
    one is added.
    """

    compute: Any
    deliver: Loop
    lift: Any
    merge: Loop
    contribute: Loop
    edges_of: Loop
    edges_between: Loop
    load_inbox: Loop
    conclude: Loop
    stops_early: bool
    may_retire: bool
    matters: Loop
    current: Any = None
    is_better: Any = None
    key_field: Any = None
    key_column: Any = None
    key: Any = None
    is_more: Any = None
    arrange: Any = None
    compute_vertex: Any = None
    commit: Any = None
    scatter_direct: Any = None
    compute_listed: Any = None
    num_lanes: int = 1
    passes_always: bool = False
    has_record: bool = False
    only_arrives: bool = False
    has_vectors: bool = False


def compute_vertex(f: Functions) -> Loop:
    """Compute one vertex; write nothing but direct messages."""
    compute, edges_of, arrange = f.compute, f.edges_of, f.arrange

    def compute_vertex(v, arguments, owned, fields, messages, has, queue):
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        vid = np.int64(owned.ids[v]) if len(owned.ids) > 0 else np.int64(v)
        in_degree = np.int64(owned.in_offsets[v + ONE] - owned.in_offsets[v])
        vertex = (vid, np.int64(owned.out_degrees[v]), in_degree)
        state, edges = load_row(fields.states, v), edges_of(owned.walked, v)
        outcome, fault = compute(
            env, arguments.params, arguments.aggregates, vertex, state, arrange(v, arguments, messages), has, edges,
            queue,
        )  # fmt: skip
        keep_fault(v, fault)
        return outcome

    return compute_vertex


def commit(f: Functions) -> Loop:
    """Write what a vertex computed; return whether it stays active, whether it sent, and the total with its share."""
    contribute = f.contribute

    def commit(v, outcome, arguments, owned, fields, outbox, contributions, total):
        state, flags, record, contribution = outcome
        store_row(fields.states, v, state)
        status = np.uint8(RETIRED) if flags & RETIRE else np.uint8(flags & HALT)
        fields.status[v] = status
        if flags & WROTE:
            owned.wrote[v] = 1
        is_sender = (flags & SENT) != 0 and owned.out_degrees[v] > 0
        if is_sender:
            store_row(outbox.records, v, record)
            outbox.sent[v] = 1
        return status == ACTIVE, is_sender, contribute(contributions, v, total, contribution)

    return commit
