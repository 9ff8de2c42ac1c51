"""Master compute: a program's `master()` or `next_phase()`, and what it decides for everybody."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from sigps.compiler.program import STOP, WAKE, VertexProgram
from sigps.engine.aggregates import Aggregates
from sigps.engine.compute_errors import error_at, master_error_of
from sigps.engine.contract import RunContext
from sigps.engine.exchange import Exchange
from sigps.engine.stats import Outcome
from sigps.model.fields import as_computed
from sigps.model.vertex import Vertex
from sigps.native.operators import PROBLEMS, Fault

__all__ = ["MasterCompute"]


class MasterCompute:
    """A program's `master()` or `next_phase()`. It runs on rank 0, and the others take over what it set.

    Args:
        program: The program with its parameters.
        num_vertices: The whole graph's.
        num_edges: The whole graph's.
        counts_messages: Whether engines know how many messages there are: where `compute()` filters them, compiled ones
            know only the edges of those who sent.
        follows_rules: Whether the methods of `program` compute by the rules of compute(), so that what has no result is
            a `ComputeError`; else they are plain Python.
        compiled: The vertex program whose `master` runs in the place of the method, and the values of its parameters.

    Attributes:
        in_flight: Whether messages are. Where all of them are for vertices that retired, nobody runs, and that is
            a superstep all the same: `master()` may wake the others. False where nobody counts them, and for
            `next_phase()`, which is asked without one.
        counts_messages: Whether it is ever known that some are.
        waits: Whether it runs only where nothing is left to do; else after every superstep.
        is_compiled: Whether a device may run it.
    """

    def __init__(
        self,
        program: Vertex,
        num_vertices: int,
        num_edges: int,
        *,
        counts_messages: bool = True,
        follows_rules: bool = False,
        compiled: tuple[VertexProgram, tuple[Any, ...]] | None = None,
    ) -> None:
        self.in_flight = False
        self._program, self._sizes = program, (num_vertices, num_edges)
        self._follows_rules, self._compiled = follows_rules, compiled
        self.waits = program.declaration.has_phases
        self.counts_messages = counts_messages and not self.waits
        self.is_compiled = compiled is not None
        self._name = "next_phase" if self.waits else "master"
        self._shared = [a for a in program.declaration.aggregators if a.is_shared]

    @staticmethod
    def of(context: RunContext, params: tuple[Any, ...] | None = None) -> MasterCompute | None:
        """Return the master compute of a run of a compiled program; None where it has neither method.

        Args:
            context: The run.
            params: `context.params()`, where they are at hand.
        """
        derived, subgraph = context.executable.program, context.subgraph
        assert derived is not None
        if not context.program.declaration.has_master:
            return None
        return MasterCompute(
            context.program,
            subgraph.num_vertices,
            subgraph.num_edges,
            counts_messages=derived.sends_along_all_edges,
            compiled=(derived, params or context.params()) if derived.master is not None else None,
        )

    def restore(self, num_messages: int, exchange: Exchange) -> None:
        """Go on from a log in which so many messages, or senders, of this rank are in flight. Collective."""
        everywhere = exchange.gather(np.array([num_messages], dtype=np.int64))
        self.in_flight = bool(everywhere.any()) and self.counts_messages

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

        Raises:
            ComputeError: If arithmetic of compiled code, or by its rules, had no result.
        """
        if not (outcome.ended if self.waits else counted):
            return False
        self.in_flight = messages > 0 and self.counts_messages
        words = np.zeros(2 + len(self._shared), dtype=np.int64)
        words[1] = num_left() if self.waits else 1
        if exchange.rank == 0:
            run = self._run_compiled if self._compiled is not None else self._run_python
            words[0], values = run(superstep, aggregates)
            words[2:] = [_as_word(v, a.field.dtype()) for v, a in zip(values, self._shared, strict=True)]
        everywhere = exchange.gather(words)
        words = everywhere[0]
        aggregates.share(
            {a.name: _from_word(words[i], a.field.dtype()) for i, a in enumerate(self._shared, start=2)}
        )
        outcome.stopped = bool(words[0] & STOP)
        wakes = bool(words[0] & WAKE) and bool(everywhere[:, 1].any())
        outcome.ended = outcome.stopped or (outcome.ended and not wakes)
        return wakes

    def error_of(
        self, fault: int, find_site: Callable[[VertexProgram, int], Any], superstep: int
    ) -> Exception:
        """Return the error of a fault that a device found in it after a superstep."""
        assert self._compiled is not None
        return master_error_of(find_site(self._compiled[0], fault), self._name, superstep)

    def _run_compiled(self, superstep: int, aggregates: Aggregates) -> tuple[int, list[Any]]:
        """Return the flags, and the shared values."""
        from sigps.compiler.cpu.master import master_for_cpu
        from sigps.native.kernel import LoopFaultError

        assert self._compiled is not None
        program, params = self._compiled
        try:
            values, flags = master_for_cpu(program)(superstep, *self._sizes, params, aggregates.values)
        except LoopFaultError as fault:
            raise master_error_of(fault.site, self._name, superstep) from None
        return int(flags), list(values)

    def _run_python(self, superstep: int, aggregates: Aggregates) -> tuple[int, list[Any]]:
        """Return the same of the method itself."""
        view = MasterView(superstep, *self._sizes, aggregates.by_name())
        if self._follows_rules:
            view.values = {name: aggregates.read(name) for name in view.values}
            view.dtypes = {a.name: a.field.dtype() for a in self._shared}
        program = copy.copy(self._program)
        program.view = view  # type: ignore[assignment]
        try:
            getattr(program, self._name)()
        except Exception as error:
            if self._follows_rules and isinstance(error, ArithmeticError):
                raise self._error_at(error, superstep) from error
            error.add_note(f"in {self._name}(), after superstep {superstep}")
            raise
        return STOP * view.stops + WAKE * view.wakes, [view.values[a.name] for a in self._shared]

    def _error_at(self, error: ArithmeticError, superstep: int) -> Exception:
        if isinstance(error, OverflowError):  # of what a shared value was given
            error = ArithmeticError(PROBLEMS[Fault.OVERFLOW]).with_traceback(error.__traceback__)
        code = getattr(type(self._program), self._name).__code__
        place = code.co_filename, code.co_firstlineno
        return error_at(error, f"{self._name}()", superstep, place)


class MasterView:
    """What it sees and sets; whatever else a vertex has belongs to compute()."""

    def __init__(self, superstep: int, num_vertices: int, num_edges: int, values: dict[str, Any]) -> None:
        self.superstep, self.num_vertices, self.num_edges = superstep, num_vertices, num_edges
        self.values = values
        self.dtypes: dict[str, np.dtype[Any]] = {}  # of what is read as compute() reads it
        self.stops = self.wakes = False

    def aggregate(self, name: str) -> Any:
        return self.values[name]

    def share(self, name: str, value: Any) -> None:
        self.values[name] = as_computed(value, self.dtypes[name]) if name in self.dtypes else value

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
