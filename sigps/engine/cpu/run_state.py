"""What a run keeps of one partition on CPU cores, and what every way of computing a superstep shares."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.compute_errors import error_in_loop
from sigps.engine.counters import Counters
from sigps.engine.cpu.edge_commit import EdgeCommit
from sigps.engine.cpu.work import edges_of, split_list, walked_edges, with_marks
from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_states import EdgeStates, check_names
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cpu.arguments import (
    ACTIVE,
    HALTED,
    RETIRED,
    UNLISTED,
    Edges,
    Inbox,
    LoopArguments,
    OwnedVertices,
    VertexFields,
)
from sigps.native.kernel import Kernel, LoopFaultError

if TYPE_CHECKING:
    from sigps.engine.cpu.value_blocks import ValueBlocks

__all__ = ["RunState"]

_NONE = np.empty(0, dtype=np.uint32)
_UINT8 = np.dtype(np.uint8)


class RunState:
    """States, outboxes and inboxes of a partition, between two supersteps and within one.

    Args:
        native: The program, compiled for the CPU.
        params: The values of its parameters, in its order.
        subgraph: The partition.
        exchange: The way to the other partitions.
        threads: Threads that run the loops.
        deterministic: Whether floating-point results must not depend on the number of ranks and threads.

    Attributes:
        native: The variant of the program whose loops run: the program, or what was proved to be the same.
        superstep: The next one.
        fields: Status and states, [num_owned] each.
        read: The outbox of the last superstep's senders, [num_owned + num_ghosts].
        write: The outbox of the next superstep's.
        last: What the last superstep did here.
        senders: Owned vertices that sent last; None while they are known by `read.sent` alone.
        active: Active vertices as a list; None while they are known by their status alone.
        edge_states: What is kept on edges; None where nothing is, and of rows that are streamed until `keep_values`.
        commit_edges: Commits it.
        pull_edges: In-edges by target, with the columns that messages read; absent where they are streamed.
    """

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        threads: Threads,
        deterministic: bool,
    ) -> None:
        program, n = native.program, subgraph.num_owned
        self.native, self.program, self.params = native, program, params
        self.subgraph, self.exchange, self.threads = subgraph, exchange, threads
        self.deterministic = deterministic
        self.superstep = 0
        self.aggregates = Aggregates(program.aggregators)
        initial = zip(program.states, program.state_dtypes, strict=True)
        states = tuple(_filled(n, dtype, field.default) for field, dtype in initial)
        self.fields = VertexFields(_filled(n, _UINT8, ACTIVE), states)
        num_records = n + subgraph.num_ghosts
        self.read, self.write = native.outbox(num_records), native.outbox(num_records)
        self.last = Counters(active=n)
        self.senders: NDArray[np.uint32] | None = None
        self.active: NDArray[np.uint32] | None = None
        in_memory = _edge_states(self)
        self.edge_states: EdgeStates | ValueBlocks | None = in_memory
        self.commit_edges: EdgeCommit | ValueBlocks | None = None
        if in_memory is not None and subgraph.outgoing is not None:
            self.commit_edges = EdgeCommit(in_memory, subgraph.outgoing.offsets, threads)
        walked = () if subgraph.incoming.is_streamed else walked_edges(program, subgraph, in_memory)
        self.owned_by_all = OwnedVertices(
            subgraph.ids,
            subgraph.incoming.offsets,
            subgraph.out_degrees,
            walked,
            self.commit_edges.wrote if self.commit_edges is not None else np.zeros(0, dtype=np.uint8),
        )
        if not subgraph.incoming.is_streamed:
            self.pull_edges = edges_of(subgraph.incoming, program)  # a column that is missing is named now
        self._of_thread = threading.local()

    @property
    def owned(self) -> OwnedVertices:
        """What loops read of owned vertices; where rows of neighbours are walked, with this thread's marks.

        Where compute() walks edges that are streamed, these are what `let_walk` last gave to this thread.
        """
        if not self.program.reads_neighbors:
            found: OwnedVertices = getattr(self._of_thread, "owned", self.owned_by_all)
            return found
        if not hasattr(self._of_thread, "owned"):
            walked = with_marks(self.owned_by_all.walked, self.subgraph)
            self._of_thread.owned = self.owned_by_all._replace(walked=walked)
        owned: OwnedVertices = self._of_thread.owned
        return owned

    def keep_values(self, values: ValueBlocks) -> None:
        """Keep values on edges beside rows that are streamed."""
        self.edge_states = self.commit_edges = values
        self.owned_by_all = self.owned_by_all._replace(wrote=values.wrote)

    def let_walk(self, walked: tuple[Any, ...]) -> None:
        """Let loops of this thread walk these out-edges from now on."""
        self._of_thread.owned = self.owned_by_all._replace(walked=walked)

    @cached_property
    def push_edges(self) -> Edges:
        """In-edges by source, owned and ghosts; laid out at the first use."""
        edges = self.subgraph.pushed
        return edges_of(edges, self.program)

    @cached_property
    def inbox(self) -> Inbox:
        """Messages combined at their targets, [num_owned]."""
        n = self.subgraph.num_owned
        return Inbox(np.zeros(n, dtype=np.uint8), rows(self.native.slots, n))

    def arguments(self) -> LoopArguments:
        """Return what compute() reads of the run in this superstep."""
        sizes = self.subgraph.num_vertices, self.subgraph.num_edges
        return LoopArguments(self.superstep, *sizes, self.params, self.aggregates.values)

    def error_of(self, fault: LoopFaultError, superstep: int) -> BaseException:
        """Return the error of a vertex whose arithmetic had no result, or whose loop was interrupted."""
        return error_in_loop(fault, self.subgraph, superstep, self.program.aggregators)

    def loop(self, name: str) -> Kernel:
        """Return a compiled loop of the variant at hand."""
        return self.native.loop(name, self.deterministic)

    def last_senders(self) -> NDArray[np.uint32]:
        """Return the owned vertices that sent last, ascending where they were not listed. O(num_owned) then."""
        if self.senders is None:
            sent = self.read.sent[: self.subgraph.num_owned].view(np.bool_)
            self.senders = np.flatnonzero(sent).astype(np.uint32)
        return self.senders

    def list_all(self) -> None:
        """List all vertices as active, and none as a sender: before superstep 0, with empty inboxes."""
        self.inbox.state.fill(UNLISTED)
        self.active, self.senders = np.arange(self.subgraph.num_owned, dtype=np.uint32), _NONE

    def open_inbox(self) -> Inbox:
        """Return the inboxes, empty, with all active vertices listed. O(num_owned) unless a push came before."""
        if self.active is None:
            np.multiply(self.fields.status != HALTED, UNLISTED, out=self.inbox.state)
            self.active = _NONE
            if self.last.active:
                self.active = np.flatnonzero(self.fields.status == ACTIVE).astype(np.uint32)
        return self.inbox

    def compute_listed(self, touched: list[NDArray[np.uint32]], counters: Counters) -> None:
        """Run the vertices whose inbox was filled, and those that are active; list who sent and stays active."""
        assert self.active is not None
        parts = [
            part
            for whole in (np.concatenate([_NONE, *touched]), self.active)
            for part in split_list(whole, self.threads.count, is_heavy=self.program.reads_neighbors)
        ]
        results = self.compute_lists(parts)
        for counts, total, _, _ in results:
            counters.add(counts, total)
        self.senders = np.concatenate([_NONE, *[r[2] for r in results]])
        self.active = np.concatenate([_NONE, *[r[3] for r in results]])

    def compute_lists(self, lists: list[NDArray[np.uint32]]) -> list[Any]:
        """Run lists of vertices; return of each the counts, totals, new senders and who stays active."""
        loop, arguments = self.loop("compute_listed"), self.arguments()
        zero, given = self.aggregates.identity, ()

        def work(vertices: NDArray[np.uint32]) -> Any:
            senders, active = np.empty_like(vertices), np.empty_like(vertices)
            counts, total = loop(
                vertices, arguments, self.owned, self.fields, self.inbox, self.native.empty, self.write, given, zero,
                senders, active,
            )  # fmt: skip
            return counts, total, senders[: counts[2]], active[: counts[1]]

        return self.threads.map(work, lists)

    def swap_outboxes(self) -> None:
        """Make what was written readable; nothing is written yet."""
        self.read, self.write = self.write, self.read

    def end_at_once(self) -> None:
        """Go to the end, after superstep 0: all states are final, all vertices halted, and nothing is in flight."""
        self.read.sent[self.last_senders()] = 0
        self.last, self.senders, self.active = Counters(), _NONE, _NONE
        self.superstep += 1

    def num_active(self) -> int:
        """Count active vertices. O(num_owned)."""
        return int(np.count_nonzero(self.fields.status == ACTIVE))

    def num_left(self) -> int:
        """Count vertices that have not retired. O(num_owned)."""
        return int(np.count_nonzero(self.fields.status != RETIRED))

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        status = self.fields.status
        status[status == HALTED] = ACTIVE
        self.last.active = self.num_active()
        self.active = None


def _filled(size: int, dtype: np.dtype[Any], value: Any) -> NDArray[Any]:
    """Return an array of one value: `np.full`, which takes three times as long for a small one."""
    made = np.empty(size, dtype=dtype)
    made[...] = value
    return made


def _edge_states(state: RunState) -> EdgeStates | None:
    program, edges = state.program, state.subgraph.outgoing
    if not program.reads_edge_links or state.subgraph.incoming.is_streamed:
        return None
    assert edges is not None
    check_names(program.edge_states, edges.columns)
    rows_of_neighbors = state.subgraph.neighbor_rows
    return EdgeStates(
        program.edge_states, program.edge_state_dtypes, edges.ends.size, rows_of_neighbors, state.exchange
    )
