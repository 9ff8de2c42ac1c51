"""What is decided for one superstep on one partition, as pure functions of counts: push or pull, and what is tested.

S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing Breadth-First Search", SC 2012.
"""

from __future__ import annotations

from typing import Literal

from sigps.kernels import direction
from sigps.kernels.cpu.arguments import SENDERS_ALL, SENDERS_BITMAP, SENDERS_NONE, SENDERS_TEST_EACH
from sigps.kernels.direction import FORCED, PUSH

__all__ = [
    "GPU_PULL_GAIN",
    "GPU_PULL_GAIN_EARLY",
    "GPU_ROW_COST",
    "PULL_GAIN",
    "PULL_GAIN_EARLY",
    "Direction",
    "Schedule",
    "choose_direction",
    "choose_release",
    "choose_sender_filter",
    "pays_in_priority_order",
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

GPU_ROW_COST = 45
"""In how many messages' time a push reads a sender's packed row on the host, a line or two at whatever address.

SSSP on kron-25, rows on the host, one and two NVIDIA H200: 354 and 250 ms without, 320 and 194 with 20 and with 45, 360
and 211 with 90.
"""


def pull_gain(stops_early: bool) -> int:
    """Return how many in-edges a pull passes on CPU cores while a push delivers one message."""
    return PULL_GAIN_EARLY if stops_early else PULL_GAIN


def choose_direction(
    *,
    sender_edges: int,
    num_edges: int,
    num_vertices: int,
    pull_gain: int,
    can_push: bool,
    num_active: int = 0,
    retired_edges: int = 0,
    forced: Direction | None = None,
) -> Direction:
    """Choose the cheaper direction; `kernels.direction.choose_direction` is the rule, and explains its arguments.

    Returns:
        `"push"` or `"pull"`. Forced push is overruled only where there is no push form.

    >>> choose_direction(sender_edges=9, num_edges=1000, num_vertices=50, pull_gain=6, can_push=True)
    'push'
    """
    chosen = direction.choose_direction(
        sender_edges, num_active, retired_edges, num_edges, num_vertices, pull_gain, FORCED[forced], can_push
    )
    return "push" if chosen == PUSH else "pull"


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


_FEW_VERTICES, _FEW_EDGES, _DENSE = 1 << 10, 1 << 16, 8


def pays_in_priority_order(*, num_vertices: int, num_edges: int) -> bool:
    """Tell whether a run in priority order may pay: where the graph is tiny, it costs more than it saves.

    It takes 0.25 ms more than supersteps that are fused. `WCC`, processor time in priority order over that of
    supersteps, two cores: R-MAT 6, 8, 10, 11 (45,000 edges) and 12 (97,000) 2.1, 2.0, 1.3, 1.15 and 0.79; email-Eu-core
    (1,005 vertices, 25,571 edges) 1.35; grids of 10, 20 and 40 rows 2.1, 1.7 and 0.7; USPowerGrid (4,941, 13,188) 0.44;
    wiki-Vote (7,115, 103,689) 0.60.

    Args:
        num_vertices: Of the graph.
        num_edges: Of the graph.

    >>> [pays_in_priority_order(num_vertices=n, num_edges=m) for n, m in ((1_005, 25_571), (4_941, 13_188))]
    [False, True]
    """
    is_dense = num_edges < _FEW_EDGES and num_edges >= _DENSE * num_vertices
    return num_vertices >= _FEW_VERTICES and not is_dense


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
