"""Whether a graph can be in memory at all, asked before the memory is taken."""

from __future__ import annotations

from sigps.errors import GraphError
from sigps.group import Group
from sigps.host_memory import machine_memory

__all__ = ["require_memory"]


def require_memory(num_bytes: int, what: str, group: Group) -> None:
    """Raise an error if this rank's share of some bytes is more than the machine's memory.

    Args:
        num_bytes: The least that all ranks together need.
        what: What needs them, in the error: "the header's 7 vertices".
        group: The ranks, which need equal shares.

    Raises:
        GraphError: If they do not fit.
    """
    share, memory = -(-num_bytes // group.size), machine_memory()
    if share > memory:
        ranks = "" if group.size == 1 else f" on each of {group.size} ranks"
        raise GraphError(
            f"{what} need at least {share / 1e9:,.0f} GB{ranks}, and this machine has {memory / 1e9:,.0f} GB: "
            "correct the number, or use more ranks on more machines"
        )
