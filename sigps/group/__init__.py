"""The ranks that work together: their collectives, and how they watch each other from start to end.

ranks.py        `Group`, and what is made of its collectives
world.py        the ranks that the launcher started
watch.py        starts the watch
limits.py       when a rank counts as lost (`sigps.Faults`)
status.py       what a rank is doing, in memory that its watchdog reads
watchdog.py     the process beside each rank: heartbeats out and in, and the end of a run with a fault
verdict.py      what counts as a fault: a pure function of what ranks reported
fault.py        a fault in words
rendezvous.py   how ranks connect over TCP
"""

from sigps.group.ranks import (
    Alone,
    Group,
    MPIGroup,
    own_range,
    query_owners,
    raise_together,
    split_by_rank,
    together,
)
from sigps.group.world import launched_rank, launched_ranks, world

__all__ = [
    "Alone",
    "Group",
    "MPIGroup",
    "launched_rank",
    "launched_ranks",
    "own_range",
    "query_owners",
    "raise_together",
    "split_by_rank",
    "together",
    "world",
]
