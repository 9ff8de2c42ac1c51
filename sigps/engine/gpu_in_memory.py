"""Supersteps of one partition in the memory of a GPU.

`GpuEngine.lease(k)` is one launch of `kernels/lease.cu`: the device counts, decides and ends by itself, and the
host reads what happened when the lease is over.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda import CudaProgram, compile_for_cuda, link
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.device.cuda import Gpu, Kernel
from sigps.engine.aggregates import Aggregates
from sigps.engine.configuration import BLOCKS_PER_SM, THREADS, num_blocks
from sigps.engine.direction import GPU_PULL_GAIN, GPU_PULL_GAIN_EARLY, Direction, choose_release
from sigps.engine.gpu_graph import GpuGraph, graph_on_gpu, ids_fit_32_bits
from sigps.engine.stats import Outcome
from sigps.engine.subgraph import Subgraph
from sigps.errors import DeviceError
from sigps.kernels.abi import JOB
from sigps.kernels.lease import ASK_NOBODY, ASK_SOME, CONTROL, LEASE, PULL, PUSH, STATS

__all__ = ["DeviceFields", "GpuEngine", "GpuProgram", "find_gpu_obstacle"]

_MOST_SUPERSTEPS = 1 << 16
"""Supersteps of one launch: as many as there is room for statistics."""

_MOST_BLOCKS = 1 << 14
"""More than any GPU holds at once."""

_DIRECTIONS = {PULL: "pull", PUSH: "push"}

_READ_AT_ONCE = 256
"""Statistics that come back with the counters, in one copy."""


@dataclass(frozen=True)
class GpuProgram:
    """A vertex program that is to run on a GPU; compiled when the graph's types are known."""

    program: VertexProgram
    gpu: Gpu


def find_gpu_obstacle(program: VertexProgram, deterministic: bool) -> str | None:
    """Tell what of a program the GPU engine is not built for yet; None where it can run."""
    if program.delivery is Delivery.MAILBOX:
        return "send_to() and messages that no record can express"
    if program.consumption is Consumption.LISTED:
        return "messages that are read one by one"
    if program.reads_edges:
        return "compute() walking its edges"
    floats = [*program.message_dtypes, *program.aggregate_dtypes]
    if deterministic and any(d.kind == "f" for d in floats):
        return "deterministic sums of floats"
    return None


class GpuEngine:
    """A vertex program on one partition on one GPU, from superstep 0 to the end.

    Args:
        native: The program and the GPU.
        params: The values of its parameters, in its order.
        subgraph: The partition.
        deterministic: Whether floating-point results must not depend on how the work is divided.
        forced: A direction to use always, or None.
        asynchronous: Whether values may be sent out of turn where the result is provably the same.
    """

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        *,
        deterministic: bool = False,
        forced: Direction | None = None,
        asynchronous: bool = False,
    ) -> None:
        obstacle = find_gpu_obstacle(native.program, deterministic)
        if obstacle is not None:
            raise DeviceError(f"device='cuda' is not built for {obstacle} yet; use device='cpu'")
        self.superstep = 0
        self.aggregates = Aggregates(native.program.aggregators, False, 0)
        self._gpu, self._program = native.gpu, native.program
        in_order = native.program.early_exit is EarlyExit.LOWEST
        self._graph = graph_on_gpu(subgraph, native.gpu, sorts_rows=not in_order)
        narrow = ids_fit_32_bits(subgraph)
        columns = _column_types(subgraph)
        self._form = _form(native.program, columns, narrow, native.gpu.arch)
        self._is_best_first = asynchronous and native.program.best_first is not None
        self._rounds = 0
        self._withheld: Any = None
        self._columns, self._narrow = columns, narrow
        self._memory = _Memory(self._form.compiled, self._graph, params, subgraph, narrow)
        self._lease = self._memory.lease
        self._lease["forced"] = {None: 0, "pull": 1, "push": 2}[forced]

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps."""
        outcome = Outcome(ended=False)
        last = self.superstep + num_supersteps
        while not outcome.ended and self.superstep < last:
            end = min(last, self.superstep + _MOST_SUPERSTEPS)
            if self._is_best_first and self.superstep == 0:
                end = 1
            control = self._launch(end, outcome)
            outcome.ended = bool(control["plan"]["ended"])
            if self._is_best_first and (outcome.ended or self.superstep == 1):
                outcome.ended = not self._release()
        if self.aggregates.values:
            self.aggregates.values = self._memory.aggregate_values(self.aggregates.values)
        return outcome

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned], by local id; a copy on the host."""
        return self.fields()[name]

    def fields(self) -> DeviceFields:
        """Return all state fields, which stay where they are; the rest of the run's memory may go."""
        kept = zip(self._program.states, self._memory.states, self._program.state_dtypes, strict=True)
        return DeviceFields({f.name: (values, dtype) for f, values, dtype in kept}, self._graph.places)

    def _launch(self, end: int, outcome: Outcome) -> Any:
        form = self._form
        self._lease["end"] = end
        self._lease["push_gain"] = GPU_PULL_GAIN_EARLY if form.stops_early else GPU_PULL_GAIN
        blocks = num_blocks(
            self._gpu.num_sms * form.blocks_per_sm,
            self._graph.places.size,
            self._graph.incoming.rows.num_positions,
        )
        form.kernel.launch(blocks, THREADS, (self._lease,), cooperative=True)
        control, stats = self._memory.read_back()
        self.superstep = int(control["plan"]["superstep"])
        outcome.stats.append_rows(stats, _DIRECTIONS)
        return control

    def _release(self) -> bool:
        """Let the best value withheld spread alone, or all of them; tell whether there was one.

        As `engine.withheld` does on the CPU.
        """
        import cupy

        memory, n = self._memory, self._graph.places.size
        parity = self.superstep & 1
        values, status = memory.states[0], memory.status
        if self._withheld is None:
            bits = memory.sent[parity].view(cupy.uint8)
            self._withheld = cupy.unpackbits(bits, bitorder="little")[:n].view(cupy.bool_)
        self._withheld &= status != 2
        degrees = self._graph.out_degrees
        withheld_edges = int(cupy.where(self._withheld, degrees, 0).sum(dtype=cupy.uint64))
        choice = choose_release(
            withheld_edges=withheld_edges,
            num_edges=int(self._lease["num_in_edges"]),
            rounds=self._rounds,
        )
        self._rounds += 1
        goes = self._withheld
        if choice == "best":
            takes_min = self._program.slots[0].op == "min"
            worst = np.iinfo(values.dtype.name)
            kept = cupy.where(goes, values, worst.max if takes_min else worst.min)
            goes = goes & (values == (kept.min() if takes_min else kept.max()))
            self._withheld &= ~goes
        memory.records[parity][:n] = values
        packed = cupy.packbits(goes, bitorder="little")
        memory.sent[parity].view(cupy.uint8)[: packed.size] = packed
        edges = int(cupy.where(goes, degrees, 0).sum(dtype=cupy.uint64))
        form = self._program if choice == "all" else self._program.best_first
        assert form is not None
        self._form = _form(form, self._columns, self._narrow, self._gpu.arch)
        self._is_best_first = choice == "best"
        memory.plan(self.superstep, edges, self._form.stops_early, has_retired=True)
        return edges > 0


class DeviceFields(Mapping[str, NDArray[Any]]):
    """State fields that stay on the device until somebody asks for one.

    Args:
        states: Each field's values by place, and its type on the host.
        places: [num_owned]: the place of a local id.
    """

    def __init__(self, states: Mapping[str, tuple[Any, np.dtype[Any]]], places: Any) -> None:
        self._states, self._places = states, places
        self._brought: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        import cupy

        if name not in self._brought:
            dtype = self._states[name][1]
            self._brought[name] = cupy.asnumpy(self.on_device(name)).astype(dtype, copy=False)
        return self._brought[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def on_device(self, name: str) -> Any:
        """Return a field as a CuPy array, of the type that the device keeps it in; nothing crosses to the host."""
        return self._states[name][0][self._places]


@dataclass(frozen=True, eq=False)
class _Form:
    """A compiled program and its kernel, loaded."""

    compiled: CudaProgram
    kernel: Kernel
    blocks_per_sm: int

    @property
    def stops_early(self) -> bool:
        return self.compiled.defines["SIGPS_EARLY_EXIT"] == "1"


@functools.lru_cache(maxsize=64)
def _form(
    program: VertexProgram, columns: tuple[tuple[str, np.dtype[Any]], ...], narrow: bool, arch: str
) -> _Form:
    compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=arch)
    sizes = {"SIGPS_THREADS": str(THREADS), "SIGPS_BLOCKS": str(BLOCKS_PER_SM)}
    kernel = Kernel(link(compiled, "lease", arch, sizes), "run_lease")
    return _Form(compiled, kernel, kernel.blocks_per_sm(THREADS))


def _column_types(subgraph: Subgraph) -> tuple[tuple[str, np.dtype[Any]], ...]:
    return tuple((name, column.dtype) for name, column in subgraph.incoming.columns.items())


class _Memory:
    """What a run keeps on the device, and the structure that tells kernels where it is."""

    def __init__(
        self,
        compiled: CudaProgram,
        graph: GpuGraph,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        narrow: bool,
    ) -> None:
        import cupy

        program, n = compiled.program, graph.places.size
        self._kept: list[Any] = []
        self._graph, self._compiled = graph, compiled
        defaults = zip(program.states, compiled.states, strict=True)
        self.states = [cupy.full(n, field.default, dtype=dtype) for field, dtype in defaults]
        self.status = cupy.zeros(n, dtype=cupy.uint8)
        words = -(-n // 32)
        self.sent = [cupy.zeros(words, dtype=cupy.uint32) for _ in range(2)]
        size = int(compiled.defines["SIGPS_RECORD_BYTES"])
        scalar = compiled.record[0] if len(compiled.record) == 1 else np.dtype(np.uint8)
        self.records = [cupy.empty(max(16, n * size) // scalar.itemsize, dtype=scalar) for _ in range(2)]
        identities = [a.field.dtype().type(a.identity) for a in program.aggregators]
        cells = _cells(identities), _cells(params)
        room = CONTROL.itemsize + STATS.itemsize * _MOST_SUPERSTEPS
        self._head = cupy.empty(room + len(cells[0]) + len(cells[1]), dtype=cupy.uint8)
        self._aggregates = self._head[room : room + len(cells[0])].view(cupy.uint64)
        self._params = self._head[room + len(cells[0]) :].view(cupy.uint64)
        self._head[room:].set(np.frombuffer(b"".join(cells), np.uint8))
        self.lease = np.zeros((), dtype=LEASE)
        self._fill(subgraph, narrow)
        self.plan(0, 0, False, has_retired=False)

    def plan(self, superstep: int, sent_edges: int, stops_early: bool, *, has_retired: bool) -> None:
        """Write the plan of a superstep whose senders are known as bits."""
        gain = GPU_PULL_GAIN_EARLY if stops_early else GPU_PULL_GAIN
        is_cheap = sent_edges * gain < int(self.lease["num_in_edges"]) + self._graph.places.size
        pushes = superstep > 0 and (is_cheap or self.lease["forced"] == 2) and self.lease["forced"] != 1
        control = np.zeros((), dtype=CONTROL)
        plan = control["plan"]
        plan["superstep"] = superstep
        plan["direction"] = PUSH if pushes and self._can_push else PULL
        plan["asking"] = ASK_SOME if superstep else ASK_NOBODY
        plan["has_bits"], plan["any_retired"] = 1, has_retired
        self._head[: CONTROL.itemsize].set(np.frombuffer(control.tobytes(), np.uint8))

    def read_back(self) -> tuple[Any, Any]:
        """Wait for the device; return its control structure and the statistics of the last lease."""
        import cupy

        first = CONTROL.itemsize + _READ_AT_ONCE * STATS.itemsize
        seen = cupy.asnumpy(self._head[:first])
        control = seen[: CONTROL.itemsize].view(CONTROL)[0]
        count = int(control["num_stats"])
        if count > _READ_AT_ONCE:
            seen = cupy.asnumpy(self._head[: CONTROL.itemsize + count * STATS.itemsize])
        stats = seen[CONTROL.itemsize : CONTROL.itemsize + count * STATS.itemsize].view(STATS)
        return control, stats

    def aggregate_values(self, like: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the aggregators' values, each of the type it has in `like`."""
        import cupy

        cells = cupy.asnumpy(self._aggregates)
        return tuple(cells[i : i + 1].view(value.dtype)[0] for i, value in enumerate(like))

    @property
    def _can_push(self) -> bool:
        """Whether a push may be planned; where `combine.cuh` cannot combine in memory, the device pulls."""
        return bool(self.lease["inboxes"])

    def _fill(self, subgraph: Subgraph, narrow: bool) -> None:
        import cupy

        graph, compiled, lease = self._graph, self._compiled, self.lease
        n = graph.places.size
        for name, edges in (("in_job", graph.incoming), ("out_job", graph.outgoing)):
            job = np.zeros((), dtype=JOB)
            job["num_vertices"], job["num_edges"] = subgraph.num_vertices, subgraph.num_edges
            job["params"], job["aggregates"] = self._at(self._params), self._at(self._aggregates)
            job["ids"] = self._at(graph.ids(narrow))
            job["out_degrees"] = self._at(graph.out_degrees)
            job["in_degrees"] = self._at(graph.incoming.rows.degrees)
            for i, column in enumerate(compiled.program.edge_columns):
                job["columns"][i] = self._at(edges.column(column))
            for i, state in enumerate(self.states):
                job["states"][i] = self._at(state)
            lease[name] = job
        lease["in_edges"], lease["out_edges"] = graph.incoming.structure(), graph.outgoing.structure()
        lease["num_owned"], lease["num_block_rows"] = n, graph.incoming.rows.num_block_rows
        lease["could_send"] = graph.could_send
        lease["num_in_edges"] = subgraph.incoming.ends.size
        for i, aggregator in enumerate(compiled.program.aggregators):
            lease["persistent"] |= np.uint32(aggregator.persistent << i)
        lease["status"] = self._at(self.status)
        for i in range(2):
            lease["sent"][i], lease["records"][i] = self._at(self.sent[i]), self._at(self.records[i])
        if compiled.neutral:
            self._make_inboxes(compiled.neutral, n)
        lease["totals"] = self._at(
            cupy.empty(_MOST_BLOCKS * max(1, len(compiled.program.aggregators)), dtype=cupy.uint64)
        )
        lease["aggregates"] = self._at(self._aggregates)
        lease["control"] = self._at(self._head)
        lease["stats"] = lease["control"] + np.uint64(CONTROL.itemsize)

    def _make_inboxes(self, neutral: bytes, n: int) -> None:
        import cupy

        width = max(w for w in (8, 4, 2, 1) if len(neutral) % w == 0)
        words = np.frombuffer(neutral, dtype=f"u{width}")
        rows = cupy.empty((n, words.size), dtype=words.dtype)
        for i, word in enumerate(words):
            rows[:, i] = word
        self.lease["inboxes"] = self._at(rows)
        self.lease["touched_in"] = self._at(cupy.zeros(-(-n // 32), dtype=cupy.uint32))
        self.lease["touched"] = self._at(cupy.empty(n, dtype=cupy.uint32))
        for i in range(2):
            self.lease["senders"][i] = self._at(cupy.empty(n, dtype=cupy.uint32))
            hubs = cupy.empty(max(1, self._graph.num_hubs), dtype=cupy.uint32)
            self.lease["hubs"][i] = self._at(hubs)

    def _at(self, array: Any) -> int:
        self._kept.append(array)
        return int(array.data.ptr)


def _cells(values: Sequence[Any]) -> bytes:
    """Return 8-byte cells, a scalar in the low bytes of each; at least one."""
    return b"".join(value.tobytes().ljust(8, b"\0") for value in values) or bytes(8)
