"""Time a superstep under `master()`: compiled, as Python, and without one."""

from __future__ import annotations

import time

from measuring import Table, check, run, timed

import sigps
from sigps import Aggregator, Param, Shared, State, Vertex

SUPERSTEPS = {"compiled": 4000, "as Python": 400, "without it": 4000}


class Ticks(Vertex):
    """Adds up which turn it is; the master counts the turns."""

    turns: Param[int]
    turn: Shared[int] = 0
    total: State[int] = 0
    ran = Aggregator.sum(int)

    def compute(self, messages):
        """Add the turn."""
        self.total += self.turn
        self.ran += 1

    def master(self):
        """Go on to the next turn."""
        self.turn += 1
        if self.turn == self.turns:
            self.stop()


class PythonTicks(Ticks):
    """The same with a master that no device can run."""

    def master(self):
        """Go on to the next turn, if the clock goes on."""
        if time.time() > 0.0:
            self.turn += 1
            if self.turn == self.turns:
                self.stop()


class PlainTicks(Vertex):
    """The same supersteps without a master."""

    turns: Param[int]
    total: State[int] = 0
    ran = Aggregator.sum(int)

    def compute(self, messages):
        """Add the superstep."""
        self.total += self.superstep
        self.ran += 1
        if self.superstep + 1 == self.turns:
            self.vote_to_halt()


WAYS = {"compiled": Ticks, "as Python": PythonTicks, "without it": PlainTicks}


def measure_master(table: Table, repeats: int) -> None:
    """Time supersteps of a thousand vertices that send nothing, and check what they add up."""
    graph = sigps.generate("grid", rows=32, columns=32)
    for way, program in WAYS.items():
        turns = SUPERSTEPS[way]
        whole, device, result = timed(lambda p=program, t=turns: run(p(turns=t), graph), repeats)  # type: ignore[misc]
        check(result.supersteps == turns and set(result["total"].tolist()) == {turns * (turns - 1) // 2})
        table.add_times(f"master() {way}, a superstep", "grid-32", whole / turns, device / turns)
