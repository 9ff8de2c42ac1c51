"""A worker: one partition on its manager's device, from states to the last superstep."""

from __future__ import annotations

import platform

from sigps.engine.contract import RunContext
from sigps.engine.stats import Outcome

__all__ = ["Worker"]


class Worker:
    """Runs a program on one partition, by the engine that the program was made ready for."""

    def __init__(self, context: RunContext) -> None:
        self.subgraph = context.subgraph
        self.engine = context.executable.spec.make(context)
        self._rank = context.exchange.rank

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective. A failure says where it happened."""
        try:
            return self.engine.lease(num_supersteps)
        except Exception as error:
            error.add_note(f"rank {self._rank} on host {platform.node()}, superstep {self.engine.superstep}")
            raise
