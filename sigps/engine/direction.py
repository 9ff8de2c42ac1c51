"""Push or pull: the decision for one superstep on one partition, as a pure function of counts.

A push touches the out-edges of the senders, each at a random place. A pull touches all in-edges in order, or
until the first hit where that is enough. Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First
Search", SC 2012. A GPU leaves the edges of those that have retired out of what a pull costs (`kernels/plan.cuh`).
"""

from __future__ import annotations

from typing import Literal

from sigps.kernels.cpu.arguments import SENDERS_ALL, SENDERS_BITMAP, SENDERS_NONE, SENDERS_TEST_EACH
from sigps.kernels.cpu.fused import is_push_cheaper

__all__ = [
    "GPU_PULL_GAIN",
    "GPU_PULL_GAIN_EARLY",
    "PULL_GAIN",
    "PULL_GAIN_EARLY",
    "Direction",
    "Schedule",
    "choose_direction",
    "choose_release",
    "choose_sender_filter",
    "pull_gain",
]

Direction = Literal["push", "pull"]

Schedule = Literal["vertex", "edge"]
"""What a work item of a superstep's messages is: a vertex and its edges, pulled or pushed, or one edge."""

PULL_GAIN = 6
"""How many in-edges a pull passes while a push delivers one message."""

PULL_GAIN_EARLY = 16
"""The same where a pull may stop before it has seen all."""


GPU_PULL_GAIN = 10
"""The first on a GPU, where a push needs an atomic for each message."""

GPU_PULL_GAIN_EARLY = 64
"""The second on a GPU."""


def pull_gain(stops_early: bool, forced: Direction | None) -> int:
    """Return how many in-edges a pull passes while a push delivers one message; 0 where every push is wanted."""
    if forced == "push":
        return 0
    return PULL_GAIN_EARLY if stops_early else PULL_GAIN


def choose_direction(
    *,
    sender_edges: int,
    num_edges: int,
    num_active: int,
    num_vertices: int,
    can_push: bool,
    stops_early: bool,
    forced: Direction | None = None,
) -> Direction:
    """Choose the cheaper direction: the rule is `is_push_cheaper`, which compiled loops ask too.

    Args:
        sender_edges: Edges from last superstep's senders into this partition.
        num_edges: All edges into this partition.
        num_active: Vertices that will run even without a message.
        num_vertices: Vertices of the partition.
        can_push: Whether the program has a push form.
        stops_early: Whether a pull may stop before it has seen all.
        forced: What the user asked for, or None.

    Returns:
        `"push"` or `"pull"`. Forced push is overruled only where there is no push form.

    >>> choose_direction(sender_edges=9, num_edges=1000, num_active=0, num_vertices=50, can_push=True,
    ...                  stops_early=False)
    'push'
    """
    if not can_push or forced == "pull":
        return "pull"
    gain = pull_gain(stops_early, forced)
    is_cheaper: bool = is_push_cheaper(  # type: ignore[no-untyped-call]
        sender_edges, num_active, num_vertices, gain, num_edges + num_vertices
    )
    return "push" if is_cheaper else "pull"


def choose_sender_filter(
    *, sent: int, could_send: int, sent_edges: int, num_edges: int, stops_early: bool
) -> int:
    """Choose how a pull finds out which of a vertex's in-neighbours sent.

    Args:
        sent: Vertices that sent, owned and ghosts.
        could_send: Those that have an out-edge.
        sent_edges: Out-edges of owned vertices that sent.
        num_edges: Out-edges of all owned vertices.
        stops_early: Whether a pull may stop before it has seen all.

    Returns:
        One of SENDERS_NONE to SENDERS_ALL, as `kernels/cpu/arguments.py` explains them.

    >>> choose_sender_filter(sent=0, could_send=9, sent_edges=0, num_edges=50, stops_early=False) == SENDERS_NONE
    True
    """
    if sent == 0:
        return SENDERS_NONE
    if sent == could_send:
        return SENDERS_ALL
    return SENDERS_TEST_EACH if stops_early or sent_edges * 10 > num_edges * 9 else SENDERS_BITMAP


MAX_ROUNDS = 4
"""How many values spread alone before the rest goes at once: a graph of many small parts must not wait long."""


def choose_release(*, waiting_edges: int, num_edges: int, rounds: int) -> Literal["best", "all"]:
    """Choose what a run in priority order sends when the last value has spread.

    Args:
        waiting_edges: Out-edges of the vertices that still have something to say.
        num_edges: All edges.
        rounds: Values that have spread alone.

    >>> choose_release(waiting_edges=90, num_edges=100, rounds=0)
    'best'
    """
    return "best" if rounds < MAX_ROUNDS and waiting_edges * 8 > num_edges else "all"
