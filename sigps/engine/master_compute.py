"""Master compute: a program's `master()` or `next_phase()`, and what it decides for everybody."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from sigps.engine.aggregates import Aggregates
from sigps.engine.contract import RunContext
from sigps.engine.exchange import Exchange
from sigps.engine.stats import Outcome
from sigps.model.vertex import Vertex

__all__ = ["MasterCompute"]


class MasterCompute:
    """A program's `master()` or `next_phase()`. It runs on rank 0, and the others take over what it set.

    Args:
        program: The program with its parameters.
        num_vertices: The whole graph's.
        num_edges: The whole graph's.
        counts_messages: Whether engines know how many messages there are: where `compute()` filters them, compiled ones
            know only the edges of those who sent.

    Attributes:
        in_flight: Whether messages are. Where all of them are for vertices that retired, nobody runs, and that is
            a superstep all the same: `master()` may wake the others. False where nobody counts them, and for
            `next_phase()`, which is asked without one.
        waits: Whether it runs only where nothing is left to do; else after every superstep.
    """

    def __init__(
        self, program: Vertex, num_vertices: int, num_edges: int, *, counts_messages: bool = True
    ) -> None:
        self.in_flight, self._counts_messages = False, counts_messages
        self._program, self._sizes = program, (num_vertices, num_edges)
        self.waits = program.declaration.has_phases
        self._counts_messages &= not self.waits
        self._shared = [a for a in program.declaration.aggregators if a.is_shared]

    @staticmethod
    def of(context: RunContext) -> MasterCompute | None:
        """Return the master compute of a run of a compiled program; None where it has neither method."""
        derived, subgraph = context.executable.program, context.subgraph
        assert derived is not None
        if not context.program.declaration.has_master:
            return None
        counts = derived.sends_along_all_edges
        return MasterCompute(
            context.program, subgraph.num_vertices, subgraph.num_edges, counts_messages=counts
        )

    def restore(self, num_messages: int, exchange: Exchange) -> None:
        """Go on from a log in which so many messages, or senders, of this rank are in flight. Collective."""
        everywhere = exchange.gather(np.array([num_messages], dtype=np.int64))
        self.in_flight = bool(everywhere.any()) and self._counts_messages

    def run(
        self,
        outcome: Outcome,
        superstep: int,
        messages: int,
        aggregates: Aggregates,
        exchange: Exchange,
        *,
        counted: bool,
        num_left: Callable[[], int],
    ) -> bool:
        """Run it, if it is its turn, and tell whether all are to wake. Collective.

        A phase in which nobody would run does not begin: the run ends where all have retired.

        Args:
            outcome: The lease so far; whether it has ended is what this says.
            superstep: The last one that was counted.
            messages: What it sent.
            aggregates: Shared values among them are set when this returns.
            exchange: The way to the others.
            counted: Whether it was counted since this was called last.
            num_left: Counts the vertices of this rank that have not retired.
        """
        if not (outcome.ended if self.waits else counted):
            return False
        self.in_flight = messages > 0 and self._counts_messages
        words = np.zeros(3 + len(self._shared), dtype=np.int64)
        words[2] = num_left() if self.waits else 1
        if exchange.rank == 0:
            view = MasterView(superstep, *self._sizes, aggregates.by_name())
            program = copy.copy(self._program)
            program.view = view  # type: ignore[assignment]
            try:
                (program.next_phase if self.waits else program.master)()
            except Exception as error:
                name = "next_phase" if self.waits else "master"
                error.add_note(f"in {name}(), after superstep {superstep}")
                raise
            words[:2] = view.stops, view.wakes
            for i, shared in enumerate(self._shared, start=3):
                words[i] = _as_word(view.values[shared.name], shared.field.dtype())
        everywhere = exchange.gather(words)
        words = everywhere[0]
        aggregates.share(
            {a.name: _from_word(words[i], a.field.dtype()) for i, a in enumerate(self._shared, start=3)}
        )
        outcome.stopped, wakes = bool(words[0]), bool(words[1]) and bool(everywhere[:, 2].any())
        outcome.ended = outcome.stopped or (outcome.ended and not wakes)
        return wakes


class MasterView:
    """What it sees and sets; whatever else a vertex has belongs to compute()."""

    def __init__(self, superstep: int, num_vertices: int, num_edges: int, values: dict[str, Any]) -> None:
        self.superstep, self.num_vertices, self.num_edges = superstep, num_vertices, num_edges
        self.values = values
        self.stops = self.wakes = False

    def aggregate(self, name: str) -> Any:
        return self.values[name]

    def share(self, name: str, value: Any) -> None:
        self.values[name] = value

    def stop(self) -> None:
        self.stops = True

    def wake_all(self) -> None:
        self.wakes = True

    def contribute(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"vertices contribute to the aggregator {name!r}, in compute(); it is read here")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name!r} belongs to a vertex, and so to compute(): this runs for all of them")


def _as_word(value: Any, dtype: np.dtype[Any]) -> Any:
    return np.array([value], dtype=dtype).astype(_wide(dtype)).view(np.int64)[0]


def _from_word(word: np.int64, dtype: np.dtype[Any]) -> Any:
    return np.array([word]).view(_wide(dtype)).astype(dtype)[0]


def _wide(dtype: np.dtype[Any]) -> type[np.generic]:
    return {"f": np.float64, "u": np.uint64}.get(dtype.kind, np.int64)
