"""The control plane: small orders and reports between the master and the worker managers, as msgpack on the host."""

from __future__ import annotations

from typing import Any

from sigps.group import Group

__all__ = ["Communicator"]


class Communicator:
    """Orders go from the master (rank 0) to all, reports from all to all. Both are collective."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.rank, self.size = group.rank, group.size

    @property
    def is_master(self) -> bool:
        return self.rank == 0

    def order(self, order: dict[str, Any] | None) -> dict[str, Any]:
        """Give the master's order to everyone; the others pass None."""
        result = self.group.broadcast(order)
        assert result is not None
        return result

    def report(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        """Return every rank's report, by rank."""
        return self.group.all_gather(report)
