"""Batches of updates: one in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Updates"]


@dataclass(frozen=True, eq=False)
class Updates:
    """One batch: edges to delete, then edges to insert, as `Graph.apply` takes them.

    Attributes:
        inserts: Edges to insert.
        deletes: Edges to delete.
        times: [inserts]: when each came, where the stream has a window.
        vertices: Ids that become vertices with or without an edge.
    """

    inserts: Any = None
    deletes: Any = None
    times: Any = None
    vertices: Any = None
