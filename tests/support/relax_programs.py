"""Programs of one monotone fold, for runs without barriers: a vertex keeps the best that it gets, and tells others."""

from __future__ import annotations

from typing import Any

from cells import run_cell

__all__ = ["ALONG", "MORE", "relax"]

_RELAX = """
class Relax(Vertex, message={type}):
    {param}
    best: State[{type}] = {worst}

    def compute(self, messages):
        received = {first} if self.superstep == 0 else {fold}(messages, default={worst})
        if received {better} self.best:
            self.best = received
            {loop}
        self.vote_to_halt()
"""
ALONG = "for edge in self.out_edges: self.send(edge, self.best + edge.weight)"
MORE = "self.send_to_neighbors(self.best + 1)"


def relax(first: str = "(0.0 if self.id == 5 else inf)", loop: str = ALONG, **others: str) -> Any:
    """Return a class that keeps the least of what it gets, or by `fold` and `better` the greatest."""
    given = {"type": "float", "worst": "inf", "fold": "min", "better": "<"} | others
    given = {"param": f"step: Param[{given['type']}] = 1"} | given
    return run_cell(_RELAX.format(first=first, loop=loop, **given))["Relax"]
