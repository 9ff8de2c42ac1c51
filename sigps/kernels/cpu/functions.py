"""A program's functions as loops call them, and the two that every loop over vertices calls for each.

The loops beside this file are plain Python that Numba compiles around a program's functions: a factory takes
`Functions` and returns a loop. The loop has the schedule and nothing of the work; the functions do the work and see no
array. A loop runs on one thread, over a range or a list of vertices that the engine cuts; it writes only those
vertices, so no loop needs an atomic. What loops take and return is in `arguments.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sigps.kernels.cpu.arguments import ACTIVE, HALT, RETIRE, RETIRED, SENT

__all__ = ["ONE", "Functions", "Loop", "commit", "compute_vertex", "note_fault"]

ONE = np.uint64(1)

Loop = Callable[..., Any]


class Functions(NamedTuple):
    """A program's functions and its arrays' loads and stores, compiled.

    `deliver(arguments, record, ids, source, target, columns)` gives (passes, slots), or (passes, message) where
    messages are listed. `load_inbox(v, inbox, empty)` gives (has, messages). `conclude(values, total, identity)` gives
    the aggregators' next values.

    In a monotone program the first slot is the key: `current(states, v)` is the current value of v, `is_better(key,
    other)` is strict, and `matters(states, v, slots)` tells whether a message would improve v; messages of other
    programs always matter. A key is made of the record's field `key_field`, and of the edge column `key_column` where
    one is added.
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
    load_inbox: Loop
    conclude: Loop
    choose_direction: Loop
    prefetch: Loop
    stops_early: bool
    may_retire: bool
    matters: Loop
    note_fault: Any = None
    current: Any = None
    is_better: Any = None
    key_field: int | None = None
    key_column: int | None = None
    compute_vertex: Any = None
    commit: Any = None
    scatter_direct: Any = None
    compute_listed: Any = None


def note_fault(arguments: Any, v: Any, fault: Any) -> None:
    """Keep the first fault; of several threads that find one at the same time, any."""
    if fault != 0 and arguments.faults[0] == 0:
        arguments.faults[0] = np.int64(v) << 24 | fault


def compute_vertex(f: Functions) -> Loop:
    """Compute one vertex; write nothing but direct messages."""
    compute, load_states, edges_of, note = f.compute, f.load_states, f.edges_of, f.note_fault

    def compute_vertex(v, arguments, owned, fields, messages, has, queue):
        env = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        vid = np.int64(owned.ids[v]) if len(owned.ids) > 0 else np.int64(v)
        in_degree = np.int64(owned.in_offsets[v + ONE] - owned.in_offsets[v])
        vertex = (vid, np.int64(owned.out_degrees[v]), in_degree)
        state, edges = load_states(fields.states, v), edges_of(owned.walked, v)
        outcome, fault = compute(
            env, arguments.params, arguments.aggregates, vertex, state, messages, has, edges, queue
        )
        note(arguments, v, fault)
        return outcome

    return compute_vertex


def commit(f: Functions) -> Loop:
    """Write what a vertex computed; return whether it stays active, whether it sent, and the total with its share."""
    store_states, store_record, contribute = f.store_states, f.store_record, f.contribute

    def commit(v, outcome, arguments, owned, fields, outbox, contributions, total):
        state, flags, record, contribution = outcome
        store_states(fields.states, v, state)
        status = np.uint8(RETIRED) if flags & RETIRE else np.uint8(flags & HALT)
        fields.status[v] = status
        is_sender = (flags & SENT) != 0 and owned.out_degrees[v] > 0
        if is_sender:
            store_record(outbox.records, v, record)
            outbox.sent[v] = 1
        return status == ACTIVE, is_sender, contribute(arguments, contributions, v, total, contribution)

    return commit
