"""A monotone program that goes on from its last states when edges are inserted and deleted, on one GPU.

As `engine/cpu/live.py`, where what a vertex sends is its key, and nothing else. So a batch is two launches of
`kernels/cuda/live.cu` and a lease that begins where they leave off:

* rows are changed where they lie (`following.py`), without waiting for the device;
* vertices that a deleted edge held up are given back their states of superstep 0, and what they held up, and so on:
  a round a step, by keys, which grow along edges;
* the sources of new edges that improve their targets send their keys again, and so do all in-neighbours of what was
  given back.

The host reads once what they came to, and launches the lease only if there is something to send.

Without numbers on edges keys do not grow, and hold each other up in circles: what loses an edge gets a full run.

What a batch costs is counted in messages (`Spending`), launches among it, which here take as long as many of these.
Where new edges alone come, no run costs much more than a full one, which passes the same messages and others. So what
comes on top is bounded: trimming may cost a quarter of a full run, and all together no more than one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.compiler.program import VertexProgram
from sigps.compiler.proofs.incremental import Incremental
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.direction import PULL_GAIN
from sigps.engine.exchange import Exchange
from sigps.engine.gpu import snapshot as gpu_snapshot
from sigps.engine.gpu.components import gpu_components
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.engine import GpuProgram
from sigps.engine.gpu.following import TO_THE_END, GpuFollowingEngine
from sigps.engine.gpu.path_lengths import gpu_path_lengths
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import AT_ONCE, StatsLog, SuperstepStats
from sigps.kernels.cuda.abi import copy_into, structure

__all__ = [
    "AT_A_TIME",
    "MOST_STAMP",
    "ROUND",
    "SUPERSTEP",
    "TRIMMING",
    "GpuLiveEngine",
    "find_live_obstacle",
]

_BEGIN, SUPERSTEP, ROUND = 50_000_000, 600_000, 400_000
"""To begin a full run, a superstep and a round of trimming take as long as so many messages on one NVIDIA H200."""
_FOUND_AT_ONCE = 32
"""A message of what is found at once takes as long as so many of supersteps."""
TRIMMING = 4
"""Trimming may cost one part in so many of what a run may."""
AT_A_TIME = 64
"""Supersteps between two looks at what a run has cost; as many as before each time after that."""
MOST_STAMP = 1 << 31

_ORDERS = structure("Orders").dtype


def find_live_obstacle(program: VertexProgram, found: Incremental) -> str | None:
    """Return why a program whose edges follow does not go on from its last states on a GPU; None where it does."""
    if found.kind != "monotone":
        built = "monotone programs, those of a first arrival, and local measures whose vertices send nothing"
        return found.why if found.kind == "full" else f"on a GPU incremental runs are built for {built}"
    claim = program.monotone
    assert claim is not None
    if not found.record_is_key:
        return "on a GPU incremental runs are built for programs that send their keys, and nothing else"
    if program.edge_columns and (claim.column is None or len(program.edge_columns) > 1):
        return "on a GPU incremental runs are built for programs that read one number of an edge, which adds to keys"
    if claim.column is not None:
        is_double = program.state_dtypes[claim.current] == np.float64
        if not is_double or program.slots[0].op != "min":
            return "on a GPU keys that edges add to are followed where they are doubles, and less is better"
    return None


class GpuLiveEngine(GpuFollowingEngine):
    """A monotone program whose states stay on a GPU, as its edges do, which follow the versions of a graph.

    Args:
        native: As `GpuFollowingEngine`'s, and so are the next three.
        params: See there.
        subgraph: See there.
        exchange: See there.
        has_witnesses: Whether the program keeps states beside its key that come with it.
        at_once: Whether full runs may find the fixed point out of turn.
    """

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        has_witnesses: bool,
        at_once: bool = False,
    ) -> None:
        claim = native.program.monotone
        assert claim is not None
        self._has_witnesses, self._key, self._at_once = has_witnesses, claim.current, at_once
        self._adds = claim.column is not None
        self._takes_min = native.program.slots[0].op == "min"
        super().__init__(native, params, subgraph, exchange, refused="")

    def _lay_out(self) -> None:
        self._stamp = 1
        self._launched: int | None = None  # with which limit, and not read yet
        self._key_type = self._keys.dtype.name
        self._lay_out_rows()
        if not self.obstacle:
            self._make_room_for_trimming()

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end."""
        import cupy

        self._read()
        self._agree()
        if self.obstacle:
            return StatsLog()
        engine = self._begun()
        at_least_one = cupy.maximum(engine._graph.out_degrees, 1)  # who sends to nobody now may get an edge
        for arguments in ("in", "out"):
            engine._lease[arguments]["out_degrees"] = at_least_one.data.ptr
        outcome = engine.lease(1)
        for arguments in ("in", "out"):
            engine._lease[arguments]["out_degrees"] = engine._graph.out_degrees.data.ptr
        self._note_first([values.copy() for values in self._states])
        stats = StatsLog(outcome.stats)
        keys = self._keys
        at_first = engine._memory.array("records1", keys.dtype)[: keys.size]
        if bool(((at_first != keys) & (self._sent[: keys.size] == 1)).any()):
            self.obstacle = "what vertices send in superstep 0 is not their key"
        self._agree()
        if self.obstacle:
            return stats
        self._fates[:] = 0
        self._has_numbers = False
        if not outcome.ended:
            found = self._found_at_once(stats[-1].messages)
            if found is None:
                stats.extend(engine.lease(TO_THE_END).stats)
            else:
                stats.append(found)
                engine.superstep += 1
        more = (_FOUND_AT_ONCE - 1) * sum(s.messages for s in stats if s.direction == AT_ONCE)
        self.full_cost = _BEGIN + len(stats) * SUPERSTEP + more
        self._end_run()
        return stats

    def _note_first(self, states: list[Any]) -> None:
        """Keep the states of superstep 0, and who sent then."""
        import cupy

        engine = self._engine
        self._first = states
        self._sent = gpu_snapshot.senders(engine._memory, engine._control).astype(cupy.uint8)

    def _found_at_once(self, sent_edges: int) -> SuperstepStats | None:
        """Find the fixed point after superstep 0, as the engine does; None where that does not pay."""
        if not self._at_once:
            return None
        engine, program, gpu = self._engine, self._native.program, self._native.gpu
        graph, memory = engine._graph, engine._memory
        if self._column is not None:
            graph.forget(f"weights {self._column}")  # new edges may have others
            paths = gpu_path_lengths(program, graph, gpu)
            if paths is None:
                return None
            sent = memory.array(f"sent{engine.superstep & 1}", np.uint32)
            narrow = engine._variant.compiled.defines["SIGPS_ID"] == "int32_t"
            return paths.run(memory.states, sent, graph.numbering.ids(narrow=narrow))
        if program.priority_form is None or sent_edges < self._num_edges:
            return None
        components = gpu_components(program, graph, gpu)
        return components.run(memory.states[0]) if components is not None else None

    def widen(self, inserts: EdgeChanges) -> None:
        """Take note of numbers that keys would not grow by."""
        weights = inserts.columns.get(self._column) if self._column is not None else None
        if type(weights) is not np.ndarray:  # of those on the device none is below 0 (`given_edges.py`)
            return
        if weights.size and not weights.min() >= 0:
            self.obstacle = "an edge's number is below 0, so keys do not grow along edges"

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where deleted edges part what holds itself up, or it costs too much."""
        self.refused = ""
        if self.obstacle:
            return None
        engine, memory, superstep = self._engine, self._engine._memory, self._engine.superstep
        self._begin_again(spending.left // TRIMMING)
        found = self._read()
        self._launched = None
        if self.obstacle:
            return None
        self._stamp += int(found["num_rounds"]) + 1
        edges = int(found["num_sent_edges"])
        cost = edges + int(found["num_rounds"]) * ROUND + int(found["num_read"]) // PULL_GAIN
        if found["is_given_up"] or not spending.take(cost):
            return None
        self._changes = bool(found["num_listed"] or edges)
        if not edges:
            self._number()
            return StatsLog()
        engine._control = memory.set_next(superstep, edges, engine._variant.pull_gain, has_retired=False)
        engine._num_small = 0
        stats, ended = StatsLog(), False
        while not ended:
            outcome = engine.lease(max(AT_A_TIME, len(stats)))
            ended = outcome.ended
            stats.extend(outcome.stats)
            cost = outcome.stats.num_messages + len(outcome.stats) * SUPERSTEP
            if not ended and not spending.take(cost):
                return None
        self._number()
        return stats

    def _begin_again(self, most_cost: int) -> None:
        """Find who is to send, for the superstep that comes. Does not wait for the device."""
        live, lease, parity = self._live, self._engine._lease, self._engine.superstep & 1
        if self._stamp > MOST_STAMP:
            self._stamps[:] = 0
            self._stamp = 1
        copy_into("batch", live, self._batches.batch)
        live["stamp"], live["most_cost"] = self._stamp, most_cost
        live["senders"], live["records"] = lease["sent"][parity], lease["records"][parity]
        blocks = num_blocks(self._native.gpu, max(32 * self._size, int(live["num_words"]) // 8))
        self._kernels["begin_again"].launch(blocks, THREADS, (live,), cooperative=True)
        self._launched = most_cost

    def _edit(self) -> None:
        if not self._has_numbers and self._batches.batch["num_deletes"]:
            self._number(anew=True)
        super()._edit()

    def _number(self, *, anew: bool = False) -> None:
        """Bring the order of vertices to the fixed point, where it is needed. Does not wait for the device."""
        if self._adds or not (anew or (self._has_numbers and self._changes)):
            return
        live = self._live
        copy_into("batch", live, self._batches.batch)
        live["numbers_anew"] = anew
        blocks = num_blocks(self._native.gpu, self._num_owned)
        self._kernels["find_numbers"].launch(blocks, THREADS, (live,), cooperative=True)
        self._has_numbers = True

    def _launch_again(self) -> None:
        if self._launched is not None:
            self._begin_again(self._launched)

    @property
    def _keys(self) -> Any:
        return self._states[self._key]

    def _find_obstacle(self) -> str:
        if obstacle := super()._find_obstacle():
            return obstacle
        compiled = self._engine._variant.compiled
        numbers = [float(p) for p in self._params if np.ndim(p) == 0 and np.asarray(p).dtype.kind == "f"]
        if any(np.isnan(numbers)):
            return "a parameter is NaN, so keys have no order"
        if compiled.record[0] != compiled.states[self._key]:
            return "on a GPU what is sent must have the type of the key"
        if self._column is not None and self._subgraph.incoming.ends.size:
            weights = self._engine._graph.incoming.column(self._column)
            if weights.dtype.kind not in "iuf":
                return "an edge's number is none that adds to keys"
            given = self._subgraph.incoming.columns.get(self._column)
            if given is not None and not given.min() >= 0:
                return "an edge's number is below 0, so keys do not grow along edges"
        return ""

    def _make_room_for_trimming(self) -> None:
        import cupy

        n = self._num_owned
        self._stamps, self._fates = cupy.zeros(n, dtype=cupy.uint32), cupy.zeros(n, dtype=cupy.uint8)
        self._lists = [cupy.empty(n, dtype=cupy.uint32) for _ in range(5)]
        self._has_numbers = False
        self._numbers = cupy.empty(0 if self._adds else n, dtype=cupy.uint32)
        self._orders = cupy.zeros(_ORDERS.itemsize, dtype=cupy.uint8)

    def _fill_live(self) -> None:
        super()._fill_live()
        live = self._live
        for name, arrays in (
            ("first", self._first), ("queues", self._lists[:2]), ("expanding", self._lists[2:4]),
        ):  # fmt: skip
            for i, array in enumerate(arrays):
                live[name][i] = array.data.ptr
        for name, array in (
            ("sent", self._sent), ("fates", self._fates), ("stamps", self._stamps), ("listed", self._lists[4]),
            ("numbers", self._numbers), ("orders", self._orders), ("keys", self._keys),
        ):  # fmt: skip
            live[name] = array.data.ptr
        live["key"], live["lists_held"] = self._key, self._has_witnesses
        live["num_words"] = self._engine._memory.array("sent0", np.uint32).size
        live["cost_of_round"], live["edges_of_message"] = ROUND, PULL_GAIN
