"""A worker: one partition on its manager's device, from layout to the last superstep."""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.engine import Engine as InMemoryEngine
from sigps.engine.direction import Direction, Schedule
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.gpu.peers import GpuPeerEngine
from sigps.engine.gpu.staged import GpuPartEngine
from sigps.engine.interpreter.engine import InterpretedEngine
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.errors import DeviceError
from sigps.model.vertex import Vertex

__all__ = ["RunOptions", "Worker"]


@dataclass(frozen=True)
class RunOptions:
    """How a run goes, the same on all ranks.

    Attributes:
        deterministic: Whether floating-point results must not depend on ranks, threads and directions.
        forced: A direction to use always, or None.
        precision: The array type of Python's `float`.
        asynchronous: Whether values may be sent out of turn where the result is provably the same.
        trace: Ids, as compute() sees them, of vertices to record (interpreter only).
        saves: Whether the state is saved now and then.
        has_peers: Whether GPUs write into each other's memory.
        patience: Seconds that a GPU waits for another.
        schedule: What a work item of a superstep's messages is.
    """

    deterministic: bool = False
    forced: Direction | None = None
    precision: Literal["single", "double"] = "double"
    asynchronous: bool = False
    trace: tuple[int, ...] = ()
    saves: bool = False
    has_peers: bool = False
    patience: float = math.inf
    schedule: Schedule = "vertex"


class Engine(Protocol):
    """What a worker asks of an engine."""

    superstep: int
    aggregates: Aggregates

    def begin(self, name: str, values: NDArray[Any]) -> None: ...
    def lease(self, num_supersteps: int) -> Outcome: ...
    def save(self) -> Snapshot: ...
    def restore(self, snapshot: Snapshot) -> None: ...
    def state(self, name: str) -> NDArray[Any]: ...
    def edge_state(self, name: str) -> NDArray[Any]: ...


class Worker:
    """Runs a program on one partition: compiled where there is native code, interpreted where there is none."""

    def __init__(
        self,
        program: Vertex,
        native: NativeProgram | GpuProgram | None,
        subgraph: Subgraph,
        exchange: Exchange,
        threads: Threads,
        options: RunOptions,
    ) -> None:
        self.subgraph = subgraph
        self.engine = _engine(program, native, subgraph, exchange, threads, options)
        self._rank = exchange.rank
        self._traces = bool(options.trace)

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by local id."""
        self.engine.begin(name, values)

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. A failure says where it happened."""
        try:
            return self.engine.lease(num_supersteps)
        except Exception as error:
            error.add_note(f"rank {self._rank} on host {platform.node()}, superstep {self.engine.superstep}")
            raise

    @property
    def traced(self) -> list[dict[str, Any]] | None:
        """What the interpreter recorded; None where nothing is traced."""
        return self.engine.traced if self._traces and isinstance(self.engine, InterpretedEngine) else None

    def save(self) -> Snapshot:
        """Return what this partition needs to go on."""
        return self.engine.save()

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there. Collective."""
        self.engine.restore(snapshot)


def _engine(
    program: Vertex,
    native: NativeProgram | GpuProgram | None,
    subgraph: Subgraph,
    exchange: Exchange,
    threads: Threads,
    options: RunOptions,
) -> Engine:
    if native is None:
        return InterpretedEngine(
            program,
            subgraph,
            exchange,
            deterministic=options.deterministic,
            precision=options.precision,
            trace=options.trace,
        )
    params = tuple(
        field.dtype(options.precision).type(getattr(program, field.name)) for field in native.program.params
    )
    master = None
    if program.declaration.has_master:
        counts = native.program.sends_along_all_edges
        master = MasterCompute(program, subgraph.num_vertices, subgraph.num_edges, counts_messages=counts)
    if isinstance(native, GpuProgram):
        make: Callable[..., Engine] = GpuEngine if exchange.size == 1 else GpuPartEngine
        if options.has_peers:
            make = functools.partial(GpuPeerEngine, patience=options.patience)
        try:
            return make(
                native,
                params,
                subgraph,
                exchange,
                deterministic=options.deterministic,
                forced=options.forced,
                asynchronous=options.asynchronous,
                master=master,
                saves=options.saves,
                schedule=options.schedule,
            )
        except MemoryError as error:
            raise DeviceError(
                f"the GPU has too little memory for this graph: {error}. "
                "precision='single' and fewer edge columns take less; device='cpu' uses the host's",
                rank=exchange.rank,
            ) from error
    return InMemoryEngine(
        native,
        params,
        subgraph,
        exchange,
        threads,
        deterministic=options.deterministic,
        forced=options.forced,
        asynchronous=options.asynchronous,
        master=master,
        schedule=options.schedule,
    )
