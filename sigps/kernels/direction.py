"""Push or pull: the rule, as a pure function that hosts call and compiled loops contain.

`kernels/cuda/direction.cuh` has the same rule for devices; both pass one table of cases. Directions, and what the user
forces, have one encoding everywhere.
"""

from __future__ import annotations

__all__ = ["FORCED", "FORCED_NONE", "FORCED_PULL", "FORCED_PUSH", "PULL", "PUSH", "choose_direction"]

PULL, PUSH = 0, 1

FORCED_NONE, FORCED_PULL, FORCED_PUSH = 0, 1, 2

FORCED = {None: FORCED_NONE, "pull": FORCED_PULL, "push": FORCED_PUSH}
"""By the direction that the user wants."""


def choose_direction(
    sender_edges: int,
    num_active: int,
    retired_edges: int,
    num_edges: int,
    num_vertices: int,
    pull_gain: int,
    forced: int,
    can_push: bool,
) -> int:
    """Choose the cheaper direction of a superstep.

    A push visits the senders' edges, and the active vertices that it lists, at random places. A pull passes all
    in-edges in order but those of retired vertices, and all vertices; where nothing was sent it passes no edge, and is
    cheaper than a list of nearly all vertices.

    Args:
        sender_edges: Out-edges of the last superstep's senders.
        num_active: Active vertices that a push lists; 0 where it scans all vertices, as GPUs do.
        retired_edges: Out-edges of retired vertices; 0 where they are not counted.
        num_edges: All edges.
        num_vertices: All vertices.
        pull_gain: In-edges that a pull passes while a push delivers one message.
        forced: FORCED_NONE, FORCED_PULL or FORCED_PUSH.
        can_push: Whether the program has a push form that the run may use. Forced push is overruled only by this.

    Returns:
        PULL or PUSH.
    """
    if not can_push or forced == FORCED_PULL:
        return PULL
    if forced == FORCED_PUSH:
        return PUSH
    if sender_edges == 0 and num_active * 4 > num_vertices * 3:
        return PULL
    pull_cost = num_edges + num_vertices - retired_edges
    return PUSH if (sender_edges + num_active) * pull_gain < pull_cost else PULL
