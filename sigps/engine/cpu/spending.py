"""What an incremental run may cost: counted as it is spent, and asked for before a step begins."""

from __future__ import annotations

from sigps.engine.cpu.engine import FusedSupersteps
from sigps.engine.cpu.run_state import RunState
from sigps.engine.direction import PULL_GAIN
from sigps.engine.superstep import Done, Fused

__all__ = ["LimitedSupersteps", "Spending"]


class Spending:
    """What an incremental run costs, in messages. An edge that is only read is a sixth of one, as in a pull.

    Args:
        most: How much it may cost; None for any amount.

    Attributes:
        spent: What it has cost.

    >>> spending = Spending(100)
    >>> spending.take(edges=540), spending.take(11), spending.left, spending.take(edges=60), spending.left
    (True, False, 10, True, 0)
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = 1 << 62 if most is None else most
        self.spent = 0

    @property
    def left(self) -> int:
        """How many messages are left."""
        return self._most - self.spent

    @property
    def left_edges(self) -> int:
        """How many edges may be read with these."""
        return min(self.left, 1 << 59) * PULL_GAIN

    def take(self, messages: int = 0, *, edges: int = 0) -> bool:
        """Count so much more, if it is left; return whether it was."""
        more = messages + -(-edges // PULL_GAIN)
        if more > self.left:
            return False
        self.spent += more
        return True


class LimitedSupersteps:
    """Supersteps, fused where they may be, each of which is paid for before it runs.

    Args:
        state: What the run keeps.
        fused: Runs small ones at once, or None.
        spending: What may be spent.

    Attributes:
        is_spent: Whether a superstep was left out since too little was left; the run seems to end there.
    """

    def __init__(self, state: RunState, fused: Fused | None, spending: Spending) -> None:
        self._state, self._spending = state, spending
        self._fused = fused if isinstance(fused, FusedSupersteps) else None
        self.is_spent = False

    def run(self, most_supersteps: int) -> Done | None:
        """Run some, or tell the loop to run the next one itself, or to end."""
        last, left = self._state.last, self._spending.left
        first = last.sent_edges + last.active
        if first > left:
            self.is_spent = True
            return Done((), 0, 0)
        done = self._fused.run(most_supersteps, left) if self._fused is not None else None
        messages = (
            first if done is None else sum(entry.messages for entry in done.stats) + first - done.in_flight
        )
        self._spending.take(messages)
        return done
