"""Without barriers: strategies that compute blocks of vertices in the order of their keys, until nothing changes.

They stand in the place of all supersteps after the first: `Asynchronous` for programs whose results provably do not
depend on when a record is read (`compiler/proofs/asynchronous.py`), `Contraction` for those that are declared to end
near a fixed point. The cores that take blocks are `crew.py`.

A run on one rank is one round. On several ranks, or where state logs are written, `run` is called for each of many: a
rank works on its own blocks until none is marked or so many edges were read (`ROUND_SWEEPS`); then records cross as
between supersteps, and mark the blocks that read them. The end is no mark on any rank after that. Nothing is under way
between rounds, and all last records are in flight there for a state log.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.crew import MOST_TURNS, Crew, Schedule
from sigps.engine.cpu.crossing import Crossing
from sigps.engine.cpu.path_lengths import Parents
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.residuals import Residuals, find_claim
from sigps.engine.cpu.run_state import RunState
from sigps.engine.fixed_points import FIRST_SUPERSTEPS, falls_again
from sigps.engine.stats import FusedStats
from sigps.engine.superstep import Done, Fused
from sigps.errors import ConfigError
from sigps.kernels.cpu.arguments import HALTED, LoopArguments
from sigps.kernels.cpu.asynchronous import Blocks

__all__ = ["Asynchronous", "Automatic", "Contraction", "have_all_sent"]

log = logging.getLogger(__name__)

ROUND_SWEEPS = 4
"""Sweeps over the edges of a rank, at most, before records cross."""


class Asynchronous:
    """Runs all supersteps after the first without barriers.

    Args:
        state: What the run keeps, of a program that is proved to need none.
        records: What it sends, with the last record of every vertex.
        schedule: How blocks are chosen.
        saves: Whether state logs are written.
    """

    def __init__(self, state: RunState, records: Records, schedule: Schedule, *, saves: bool = False) -> None:
        assert records.kept is not None
        self._state, self._records, self._kept, self._saves = state, records, records.kept, saves
        self._rounds = Rounds(state, schedule, "run_blocks", saves)
        bits = self._rounds.crew.bits
        self._inside = (8 << bits) if schedule.most_inside is None else schedule.most_inside
        self._queues = [np.empty(1 << bits, dtype=np.uint32) for _ in range(state.threads.count)]
        claim = state.program.asynchronous
        self._parents = Parents(state) if claim is not None and claim.has_parents else None
        self._check()
        self._blocks: Blocks | None = None

    def run(self, most_supersteps: int) -> Done | None:
        """Run a round; None where a superstep comes first. Collective.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        state, rounds = self._state, self._rounds
        if state.superstep == 0:
            self._work(self._new_blocks())  # compiles
        if state.superstep == 0 or self._records.has_arrived:
            return None
        rounds.begin()
        if self._blocks is None:
            self._blocks = self._new_blocks()
            if self._parents is not None:
                self._parents.begin()
            self._mark(state.last_senders())
            self._mark(rounds.cross(*state.read))
        state.senders = None
        state.read.sent.fill(0)
        counts = self._work(self._blocks)
        self._mark(rounds.cross(*state.read))
        done = rounds.end(counts, int(np.count_nonzero(self._blocks.marked)))
        if done.active == 0:
            if self._parents is not None:
                self._check()
                self._parents.find()
            state.end_at_once()
            return done
        if self._saves:
            n = state.subgraph.num_owned
            state.read.sent[:n] = self._kept.were_sent(n)
        state.superstep += 1
        return done

    def were_sent(self) -> NDArray[np.bool_]:
        """Return which owned vertices have sent, so far."""
        return self._kept.were_sent(self._state.subgraph.num_owned)

    def _new_blocks(self) -> Blocks:
        dirty = np.zeros(self._state.subgraph.num_owned, dtype=np.uint8)
        return self._rounds.crew.blocks(dirty, self._kept.worst, self._state.native.slots[0])

    def _work(self, blocks: Blocks) -> NDArray[np.int64]:
        given = self._kept.worst, self._inside, self._state.arguments(), self._queues
        return self._rounds.crew.run(blocks, *given, most_edges=self._rounds.most_edges)

    def _mark(self, senders: NDArray[Any]) -> None:
        """Let the vertices pull that these vertices' records may improve."""
        blocks, targets = self._blocks, targets_of(senders, self._state)
        assert blocks is not None
        blocks.dirty[targets] = 1
        blocks.marked[self._rounds.crew.blocks_of(targets)] = 1

    def _check(self) -> None:
        obstacle = self._parents.find_obstacle() if self._parents is not None else None
        if obstacle is not None:
            name = self._state.program.name
            raise ConfigError(
                f"{name} cannot run with asynchronous=True on this graph: {obstacle}, so that parents depend on the "
                "order of messages. Use asynchronous='auto'"
            )


class Automatic:
    """Runs supersteps at first, and goes on without barriers where keys fall again and again; on one rank.

    Args:
        supersteps: What runs several of the first at once, or None.
        free: What runs the others.
        state: What the run keeps.
        why: Why no barriers may pay, for the log.
    """

    def __init__(self, supersteps: Fused | None, free: Asynchronous, state: RunState, why: str) -> None:
        self._supersteps, self._free, self._state, self._why = supersteps, free, state, why
        self._messages = self._counted = 0  # that the first so many supersteps sent
        self._early: int | None = None
        self._is_free: bool | None = None

    def run(self, most_supersteps: int) -> Done | None:
        """Run at most so many of the first supersteps, or to the end; None where the loop is to run the next one."""
        if self._is_free is None:
            most_supersteps = min(most_supersteps, self._look())
        if self._is_free:
            return self._free.run(most_supersteps)
        done = self._supersteps.run(most_supersteps) if self._supersteps else None
        if done is not None and self._is_free is None:
            assert isinstance(done.stats, FusedStats)
            self._messages += done.stats.num_messages
            self._counted = self._state.superstep
        return done

    def _look(self) -> int:
        """Count what was sent, and decide when the first supersteps are over; return how many may run before it."""
        state, middle = self._state, FIRST_SUPERSTEPS // 2
        superstep = state.superstep
        if self._counted < superstep:
            self._messages += state.last.sent_edges
            self._counted = superstep
        if self._early is None and superstep >= middle:
            self._early = state.last_senders().size
        if superstep >= FIRST_SUPERSTEPS:
            reached = int(state.subgraph.out_degrees[self._free.were_sent()].sum())
            passes, late = self._messages / max(1, reached), state.last_senders().size
            self._is_free = falls_again(passes=passes, early=self._early or 0, late=late)
            goes_on = "without barriers" if self._is_free else "by supersteps"
            told = state.program.name, goes_on, superstep, self._why, passes
            log.info("%s goes on %s after %d supersteps: %s, and passed edges %.1f times", *told)
            return 1 << 62
        return (middle if superstep < middle else FIRST_SUPERSTEPS) - superstep


class Contraction:
    """Runs all supersteps after the first of a declared contraction without barriers.

    A vertex that changes by less than the program counts as a change marks nobody, so small changes may add up unseen.
    Where no block is left on any rank, all records cross and all blocks are computed once more, until that changes
    nothing: then each vertex is what compute() makes of its neighbours, but for less than a change.

    Args:
        state: What the run keeps.
        records: What it sends.
        schedule: How blocks are chosen.
        saves: Whether state logs are written.
    """

    def __init__(self, state: RunState, records: Records, schedule: Schedule, *, saves: bool = False) -> None:
        self._state, self._records, self._saves = state, records, saves
        self._rounds = Rounds(state, schedule, "run_contraction", saves)
        crew, size = self._rounds.crew, state.subgraph.num_owned + state.subgraph.num_ghosts
        self._inside = MOST_TURNS if schedule.most_inside is None else schedule.most_inside
        self._waits = np.zeros(state.subgraph.num_owned, dtype=np.uint8)
        self._touched = [np.zeros(crew.num_blocks, dtype=np.uint8) for _ in range(state.threads.count)]
        self._changed = np.zeros(size, dtype=np.uint8)  # since records crossed
        self._blocks = crew.blocks(self._changed[: state.subgraph.num_owned], np.int64(0), np.dtype(np.int64))
        self._is_quiet, self._num_changes = True, 0
        alone = not saves and state.exchange.size == 1 and schedule == Schedule()
        self._is_linear = alone and find_claim(state) is not None

    def run(self, most_supersteps: int) -> Done | None:
        """Run a round; None where a superstep comes first. Collective.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        state, rounds = self._state, self._rounds
        if state.superstep == 0:
            self._work()  # compiles
            if self._is_linear:
                Residuals(state).compile(self._arguments())
        if state.superstep == 0 or self._records.has_arrived:
            return None
        rounds.begin()
        state.senders = None
        near = self._come_near()
        counts = self._turn() + near
        while rounds.most_edges is None and self._num_changes > 0:
            counts += self._turn()
        is_over = self._is_quiet and self._num_changes == 0
        done = rounds.end(counts, 0 if is_over else 1)
        if is_over:
            state.aggregates.take(self._cells(0))
            state.fields.status.fill(HALTED)
            state.end_at_once()
            return done
        if self._saves:  # whatever goes on from the log, a superstep before it changed something
            state.aggregates.take(self._cells(1))
        state.superstep += 1
        return done

    def _come_near(self) -> NDArray[np.int64]:
        """Pass on the residuals of a linear contraction; return what `_turn` does, of vertices and edges."""
        counts = np.zeros(5, dtype=np.int64)
        if self._is_linear and have_all_sent(self._state):
            counts[0], counts[3] = Residuals(self._state).settle(self._arguments())
        self._is_linear = False
        return counts

    def _turn(self) -> NDArray[np.int64]:
        """Compute until no block is marked or so many edges were read, and let records cross."""
        state, rounds, blocks = self._state, self._rounds, self._blocks
        if self._is_quiet:
            rounds.cross(*state.read)
            blocks.marked.fill(1)
            self._waits.fill(1)
            self._num_changes = 0
        counts = self._work()
        ghosts = rounds.cross(self._changed, state.read.records)
        state.read.sent[ghosts] = 1
        self._changed.fill(0)
        readers = targets_of(ghosts, state)
        blocks.marked[rounds.crew.blocks_of(readers)] = 1
        self._waits[readers] = 1
        found = state.exchange.gather(np.array([np.count_nonzero(blocks.marked), counts[4]]))
        self._is_quiet = not found[:, 0].any()
        self._num_changes += int(found[:, 1].sum())
        return counts

    def _work(self) -> NDArray[np.int64]:
        no_test = have_all_sent(self._state)
        own = [(touched, self._waits, no_test) for touched in self._touched]
        given = np.int64(0), self._inside, self._arguments(), own
        return self._rounds.crew.run(self._blocks, *given, most_edges=self._rounds.most_edges)

    def _arguments(self) -> LoopArguments:
        """Return what compute() reads of a superstep before which vertices changed."""
        return self._state.arguments()._replace(superstep=2, aggregates=self._cells(1))

    def _cells(self, count: int) -> tuple[Any, ...]:
        return tuple(dtype.type(count) for dtype in self._state.program.aggregate_dtypes)


class Rounds(Crossing):
    """The rounds of a run, with the cores of this rank.

    Args:
        state: What the run keeps.
        schedule: How blocks are chosen.
        loop: The name of the cores' loop.
        saves: Whether state logs are written.

    Attributes:
        crew: The cores.
        most_edges: Edges after which a round ends on this rank; None where it goes on until no block is marked.
    """

    def __init__(self, state: RunState, schedule: Schedule, loop: str, saves: bool) -> None:
        super().__init__(state)
        self.crew = Crew(state, schedule, loop)
        self.most_edges = schedule.most_edges
        if self.most_edges is None and (saves or state.exchange.size > 1):
            self.most_edges = max(1, ROUND_SWEEPS * state.subgraph.incoming.num_edges)


def have_all_sent(state: RunState) -> bool:
    """Tell whether each in-neighbour of a vertex has a record, so that none is asked. O(vertices)."""
    num_owned, sent = state.subgraph.num_owned, state.read.sent
    have_sent = (sent[:num_owned] != 0) | (state.subgraph.out_degrees == 0)
    return bool(have_sent.all() and sent[num_owned:].all())


def targets_of(senders: NDArray[Any], state: RunState) -> Any:
    """Return the owned vertices that read these vertices' records, as an index; all where these are many. O(edges)."""
    edges = state.push_edges
    first = edges.offsets[senders].astype(np.int64)
    counts = edges.stops[senders].astype(np.int64) - first
    ends = np.cumsum(counts)
    num_edges = int(ends[-1]) if ends.size else 0
    if num_edges > edges.ends.size // 4:
        return slice(None)
    return edges.ends[np.arange(num_edges) + np.repeat(first - ends + counts, counts)]
