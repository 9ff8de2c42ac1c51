"""Cases of the direction rule, for each of its forms: Python, CUDA compiled for the host, CUDA on a GPU."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["DIRECTION_CASES", "DirectionCase"]


class DirectionCase(NamedTuple):
    """What the rule is given, and what it has to choose."""

    why: str
    chosen: Literal["push", "pull"]
    sender_edges: int
    retired_edges: int = 0
    num_edges: int = 1000
    num_vertices: int = 100
    pull_gain: int = 10
    forced: Literal["push", "pull"] | None = None
    can_push: bool = True


DIRECTION_CASES = [
    DirectionCase("few messages", "push", 10),
    DirectionCase("many messages", "pull", 1000),
    DirectionCase("no message at all", "push", 0),
    DirectionCase("one message less than what costs the same: 1090 < 1100", "push", 109),
    DirectionCase("equal costs: 1100 is not less than 1100", "pull", 110),
    DirectionCase("one message more", "pull", 111),
    DirectionCase("a gain that does not divide: 1099 < 1100", "push", 157, pull_gain=7),
    DirectionCase("and one message more: 1106", "pull", 158, pull_gain=7),
    DirectionCase("vertices count beside edges: 1000 < 1001", "push", 100, num_vertices=1),
    DirectionCase("without them 1000 is not less than 1000", "pull", 100, num_vertices=0),
    DirectionCase("a pull passes no retired edges: 500 is not less than 500", "pull", 50, 600),
    DirectionCase("one retired edge less: 500 < 501", "push", 50, 599),
    DirectionCase("all have retired, and no message is left", "pull", 0, 1100),
    DirectionCase("all but one edge have retired, and no message is left", "push", 0, 1099),
    DirectionCase("all but one edge have retired", "pull", 1, 1099),
    DirectionCase("a graph without edges", "push", 0, num_edges=0),
    DirectionCase("a graph without vertices", "pull", 0, num_edges=0, num_vertices=0),
    DirectionCase("a gain of 0 makes every push free", "push", 1 << 40, pull_gain=0),
    DirectionCase("... while there is anything to pull", "pull", 0, 1100, pull_gain=0),
    DirectionCase("forced pull", "pull", 0, forced="pull"),
    DirectionCase("forced push", "push", 1000, forced="push"),
    DirectionCase("forced push where all have retired", "push", 0, 1100, forced="push"),
    DirectionCase("no push form", "pull", 10, can_push=False),
    DirectionCase("no push form, and a forced push", "pull", 10, forced="push", can_push=False),
    DirectionCase("no push form, and a forced pull", "pull", 10, forced="pull", can_push=False),
    DirectionCase("2^40 edges, equal costs", "pull", 1 << 34, 0, (1 << 40) - 1024, 1024, pull_gain=64),
    DirectionCase(
        "2^40 edges, one message less", "push", (1 << 34) - 1, 0, (1 << 40) - 1024, 1024, pull_gain=64
    ),
    DirectionCase("2^40 edges, all but 2^20 retired", "pull", 1 << 17, (1 << 40) - (1 << 20), 1 << 40, 0),
    DirectionCase("2^40 edges, all of them messages", "pull", 1 << 40, 0, 1 << 40, 1 << 32, pull_gain=64),
    DirectionCase(
        "sums beyond 32 bits: 2^32 is not less than 2^32", "pull", 1 << 31, 0, (1 << 32) - 9, 9, pull_gain=2
    ),
    DirectionCase("products beyond 32 bits: 2^32 + 10 is not less than 1100", "pull", 429496731),
]
