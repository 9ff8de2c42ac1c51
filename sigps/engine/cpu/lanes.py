"""Several runs of one program side by side on CPU cores: k lanes on each thread, wave after wave, or a run a thread.

A thread runs a wave of at most k runs from superstep 0 to their ends in one compiled loop (`kernels/cpu/lanes.py`), and
takes the next; threads share nothing but the graph. Messages combine in the order of in-edges, so sums of floats are
those of the interpreter on one rank.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.compiler.program import EarlyExit, VertexProgram
from sigps.engine.aggregates import Aggregates
from sigps.engine.contract import LaneRun, LanesFailedError, ManyRuns, RunContext, RunFacts, RunOptions
from sigps.engine.cpu.apart import expected_occupancy, has_one_order, run_apart
from sigps.engine.cpu.monotone import has_order
from sigps.engine.cpu.work import edges_of, walked_edges
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.subgraph import columns_of
from sigps.engine.stats import ROWS, Outcome, StatsLog
from sigps.host_memory import available_memory
from sigps.kernels.cpu.arguments import (
    LaneAccount,
    LaneCounts,
    LaneLimits,
    LaneMasks,
    LaneMemory,
    LoopArguments,
    OwnedVertices,
    VertexSets,
)
from sigps.kernels.cpu.lanes import part_lanes
from sigps.kernels.direction import FORCED, PULL, PUSH
from sigps.model.vertex import Vertex
from sigps.native.interrupt import watching
from sigps.native.kernel import LoopFaultError
from sigps.native.operators import Fault

__all__ = ["choose_lanes", "find_obstacle", "run_waves"]

WIDTHS = (1, 8, 16, 32, 64)
"""How many lanes there may be; a bit of 64 each at most."""

_OF_A_LINE = 8
"""Lanes whose records share a cache line, about."""

_CACHE = 1 << 21
"""Bytes that a core's own cache has, about."""

_SHARED = 2.0
"""In so many lanes a vertex must run at a time for them to pay where they do not stay in cache."""

_PULL_GAIN, _PULL_GAIN_EARLY = 2, 4
"""In-edges that a pull passes while a push walks one."""

_ROWS, _MOST_WORK = 256, 1 << 25
"""Supersteps and work after which a call returns, so that a run can be interrupted."""

_DIRECTIONS = {PULL: "pull", PUSH: "push"}


_MOST_OF_VECTORS = 1 << 20
"""Bytes of one run above which lanes of programs of vectors are slower than a run on each thread, measured."""

_FEW = 6
"""Runs a thread below which eight lanes that do not stay in cache are too empty."""

_OF_ONE_THREAD = 1 << 18
"""Edges up to which one run gains little from more threads."""


def find_obstacle(
    program: VertexProgram, facts: RunFacts, options: RunOptions, num_runs: int, num_threads: int
) -> str:
    """Say why runs of a program cannot go side by side, in lanes or each on a thread; empty where they can. Pure."""
    if options.asynchronous is True:
        return "asynchronous=True has one run at a time"
    if num_runs < num_threads and facts.num_edges > _OF_ONE_THREAD and lanes_obstacle(program, options):
        return f"there are fewer runs than the {num_threads} threads, which share the edges of one run"
    return ""


def lanes_obstacle(program: VertexProgram, options: RunOptions) -> str:
    """Say why runs of a program cannot share lanes, so that each has a thread; empty where they can. Pure."""
    if program.lanes_obstacle:
        return program.lanes_obstacle
    if options.schedule == "edge":
        return "schedule='edge' asks every edge of one run"
    if options.asynchronous and program.priority_form is not None:
        return "it sends the best value first, in supersteps of its own; asynchronous=False has those of BSP"
    if any(a.exact is not None for a in program.aggregators):  # in deterministic runs
        return "deterministic=True adds up what vertices give to aggregators exactly"
    return ""


def _shares_no_lanes(native: NativeProgram, many: ManyRuns, context: RunContext) -> bool:
    """Tell whether each run has a thread: lanes cannot have the program, or would be slower."""
    program, programs = native.program, many.programs
    if lanes_obstacle(program, context.options):
        return True
    tables = [field.name for field in program.params if field.is_table]
    if any(getattr(other, t) is not getattr(programs[0], t) for t in tables for other in programs):
        return True  # lanes share a table
    n = context.subgraph.num_owned
    kept = (*program.state_dtypes, *program.message_dtypes, *program.message_dtypes)  # record and slots
    if any(dtype.shape for dtype in kept) and n * sum(dtype.itemsize for dtype in kept) > _MOST_OF_VECTORS:
        return True
    if _stays_in_cache(_OF_A_LINE * n * lane_bytes(native)) or len(programs) >= _FEW * context.threads.count:
        return False
    return has_one_order(native) or not context.subgraph.is_mesh  # sums in one order are pulled: all edges


def _as_in_lanes(context: RunContext) -> RunContext:
    """Return how an engine runs that leaves the bits of lanes: supersteps of BSP, and floats added up in one order."""
    in_one_order = not has_one_order(context.executable.code)
    deterministic = context.options.deterministic or in_one_order
    return context._replace(options=context.options._replace(asynchronous=False, deterministic=deterministic))


def _stays_in_cache(num_bytes: int) -> bool:
    return num_bytes <= 2 * _CACHE


def choose_lanes(
    num_runs: int,
    num_threads: int,
    num_vertices: int,
    lane_bytes: int,
    most_bytes: int,
    occupancy: float | None = None,
) -> int:
    """Choose how many runs a thread has side by side; 0 where a run needs more memory than there is.

    As many as stay in a core's cache, and at least those that share a cache line of a record: but only one where
    vertices seldom run in several lanes at once, as in searches of meshes, and do not stay in cache. No more than runs.

    Args:
        num_runs: How many there are.
        num_threads: Each has so many lanes.
        num_vertices: Of the graph.
        lane_bytes: What a vertex keeps in a lane.
        most_bytes: What all lanes of all threads may take.
        occupancy: In how many lanes a vertex ran that ran in some, in the runs so far; None before the first.

    >>> choose_lanes(5000, 2, 5000, 40, 1 << 30), choose_lanes(5, 2, 10**6, 40, 1 << 30)
    (16, 8)
    >>> choose_lanes(64, 2, 10**8, 40, 1 << 30), choose_lanes(64, 2, 10**6, 40, 1 << 30, occupancy=1.1)
    (0, 1)
    """
    share = -(-num_runs // num_threads)
    best = 0
    for width in WIDTHS:
        size = width * num_vertices * lane_bytes
        if size * num_threads > most_bytes:
            break
        stays_in_cache = _stays_in_cache(size)
        if best >= share or (best >= _OF_A_LINE and not stays_in_cache):
            break
        if best and not stays_in_cache and occupancy is not None and occupancy < _SHARED:
            break
        best = width
    return best


def loops_of(context: RunContext, programs: Sequence[Vertex]) -> NativeProgram:
    """Return a monotone program with loops that leave out what is no better, where all its keys have an order."""
    plain: NativeProgram = context.executable.code
    if plain.monotone is None:
        return plain
    columns = columns_of(context.subgraph.incoming, plain.program.edge_columns)
    given = tuple(value for program in programs for value in context._replace(program=program).params())
    is_ordered = has_order(plain.monotone, given, context.subgraph, columns, context.threads)
    return plain.monotone if is_ordered else plain


def lane_bytes(native: NativeProgram) -> int:
    """Return how many bytes a vertex keeps in a lane."""
    kept = (*native.program.state_dtypes, *native.record, *native.slots)
    return sum(dtype.itemsize for dtype in kept) + 1


def run_waves(context: RunContext, many: ManyRuns) -> Iterator[LaneRun]:
    """Run programs side by side; see `EngineSpec.run_lanes`."""
    programs, threads = many.programs, context.threads
    native: NativeProgram = context.executable.code
    if _shares_no_lanes(native, many, context):
        many.on_ready()
        if not lanes_obstacle(native.program, context.options):
            context = _as_in_lanes(context)
        yield from run_apart(context, many, programs)
        return
    context = _as_in_lanes(context)
    native = loops_of(context, programs)
    n = context.subgraph.num_owned
    most_bytes, row = available_memory() // (4 * many.ranks_here), lane_bytes(native)
    occupancy: float | None = None
    done = width = 0
    free: list[Lanes] = []
    active: list[int] = []

    def run(wave: range) -> list[LaneRun]:
        lanes = free.pop()
        try:
            return lanes.run([programs[i] for i in wave], many.max_supersteps)
        except LoopFaultError as fault:
            if fault.site[2] == Fault.INTERRUPTED:
                raise KeyboardInterrupt(f"{fault.site[0]}:{fault.site[1]}") from None
            raise LanesFailedError from None
        finally:
            free.append(lanes)

    is_ready = False

    def ready() -> None:
        nonlocal is_ready
        if not is_ready:
            is_ready = True
            many.on_ready()

    choose = functools.partial(choose_lanes, len(programs), threads.count, n, row, most_bytes)
    may_be_apart = has_one_order(native)
    with watching() if native.has_open_loops else nullcontext():
        if may_be_apart and choose(1.0) < choose():  # lanes pay where vertices run in several
            ready()
            for result in run_apart(context, many, programs[: threads.count]):
                pairs = itertools.pairwise(result.stats)
                active += [after.active for before, after in pairs if before.messages]
                yield result
            done, is_monotone = threads.count, native.program.monotone is not None
            occupancy = 1.0 if is_monotone else expected_occupancy(active, n, choose())
        while done < len(programs):
            chosen = choose(occupancy) or 1
            if chosen == 1 and may_be_apart:
                ready()
                yield from run_apart(context, many, programs[done:])
                return
            if chosen != width:
                width, free = chosen, []
            left, at_once = len(programs) - done, threads.count * (1 if occupancy is None else 4)
            share = min(width, -(-left // threads.count))
            starts = range(done, len(programs), share)[:at_once]
            waves = [range(start, min(start + share, len(programs))) for start in starts]
            free += [Lanes(context, native, width, many) for _ in range(threads.count - len(free))]
            if not is_ready:
                free[0].compile(programs[0])
                ready()
            for results in threads.map(run, waves):
                yield from results
            done = waves[-1].stop
            runs, visits = (sum(getattr(lanes, name) for lanes in free) for name in ("runs", "visits"))
            occupancy = runs / visits if visits else occupancy


class Lanes:
    """The memory of k lanes, in which one thread runs wave after wave.

    Args:
        context: What an engine is made from, on one rank.
        native: The program's loops.
        width: k.
        many: All runs: with what states begin, and which fields are wanted.

    Attributes:
        runs, visits: In supersteps with messages: how often a vertex ran in a lane, and how often one ran in some.
    """

    runs = visits = 0

    def __init__(
        self,
        context: RunContext,
        native: NativeProgram,
        width: int,
        many: ManyRuns,
    ) -> None:
        self._wanted, self._begins = many.wanted, many.begins
        self._context, self._width = context, width
        subgraph, program = context.subgraph, native.program
        n = subgraph.num_owned
        self._native, self._program = native, program
        self._masks = LaneMasks(*(np.zeros(n, dtype=np.uint64) for _ in range(4)))
        self._sets = VertexSets(*(np.zeros(-(-n // 64), dtype=np.uint64) for _ in range(2)))
        states = tuple(np.zeros(n * width, dtype=d) for d in program.state_dtypes)
        self._memory = LaneMemory(states, rows(native.record, n * width), rows(native.slots, n * width))
        self._edges = [edges_of(edges, program) for edges in (subgraph.pushed, subgraph.incoming)]
        walked = walked_edges(program, subgraph)
        self._owned = OwnedVertices(subgraph.ids, subgraph.incoming.offsets, subgraph.out_degrees, walked)
        self._loop = native.loop("run_lanes", num_lanes=width)

    def compile(self, program: Vertex) -> None:
        """Compile the loop, or read it from the cache, for runs of a program: it runs no lane."""
        wave = self._wave([program])
        wave.alive = 0
        self._supersteps(wave, 0, self._limits(1))

    def run(self, programs: Sequence[Vertex], max_supersteps: int | None) -> list[LaneRun]:
        """Run at most k programs to their ends."""
        began = time.perf_counter()
        wave, limits = self._wave(programs), self._limits(max_supersteps or 1 << 62)
        self._clear(wave.alive)
        sent_edges, rows_of_calls = 0, []
        while wave.alive:
            done, account, sent_edges = self._supersteps(wave, sent_edges, limits)
            rows_of_calls.append((done, account))
            if wave.asks_always or not wave.alive:
                counted = account.counted if wave.asks_always else None
                self._wake(wave.ask_masters(limits.end, self._num_left, counted))
        return self._results(wave, rows_of_calls, time.perf_counter() - began)

    def _wave(self, programs: Sequence[Vertex]) -> _Wave:
        return _Wave(self._context, programs, self._width, counts_idle=self._program.monotone is not None)

    def _limits(self, end: int) -> LaneLimits:
        is_early = self._program.early_exit is not EarlyExit.NEVER
        gain = _PULL_GAIN_EARLY if is_early else _PULL_GAIN
        return LaneLimits(np.uint64(0), end, _MOST_WORK, gain, FORCED[self._context.options.forced])

    def _supersteps(self, wave: _Wave, sent_edges: int, limits: LaneLimits) -> tuple[int, LaneAccount, int]:
        """Run some supersteps of the lanes that go on; return how many, their account, and the last senders' edges."""
        subgraph, num_rows = self._context.subgraph, 1 if wave.asks_always else _ROWS
        account = LaneAccount._make(
            np.zeros(size, dtype=np.int64) for size in (*[num_rows * self._width] * 3, num_rows)
        )
        arguments = LoopArguments(0, subgraph.num_vertices, subgraph.num_edges, (), ())
        limits = limits._replace(counts_idle=np.uint64(wave.counts_idle))
        done, alive, sent_edges, runs, visits = self._loop(
            np.uint64(wave.alive), sent_edges, arguments, limits, *self._edges, self._owned, self._memory,
            self._masks, self._sets, self._native.empty, wave.params, wave.values, wave.totals, wave.identity,
            wave.counts, account,
        )  # fmt: skip
        wave.alive = int(alive)
        self.runs, self.visits = self.runs + runs, self.visits + visits
        return done, account, sent_edges

    def _clear(self, alive: int) -> None:
        masks, sets, n = self._masks, self._sets, len(self._masks.has)
        for mask in (masks.retired, masks.sent, masks.has, sets.senders):
            mask.fill(0)
        masks.active.fill(alive)
        self._run_all()
        for field, states in zip(self._program.states, self._memory.states, strict=True):
            states[:] = field.default
            if field.name in self._begins:
                states.reshape(n, self._width, *states.shape[1:])[:] = self._begins[field.name][:, None]

    def _run_all(self) -> None:
        """Note all vertices as running; those that are active nowhere do nothing."""
        bits = np.zeros(64 * len(self._sets.running), dtype=np.bool_)
        bits[: len(self._masks.has)] = True
        self._sets.running[:] = np.packbits(bits, bitorder="little").view(np.uint64)

    def _num_left(self, lane: int) -> int:
        return int(np.count_nonzero((self._masks.retired >> np.uint64(lane)) & np.uint64(1) == 0))

    def _wake(self, woken: int) -> None:
        """Make all vertices active that have not retired, in the lanes of a mask."""
        if woken:
            self._masks.active[:] |= ~self._masks.retired & np.uint64(woken)
            self._run_all()

    def _results(self, wave: _Wave, calls: list[tuple[int, LaneAccount]], seconds: float) -> list[LaneRun]:
        width, n = self._width, len(self._masks.has)
        fields = {}
        for field, states in zip(self._program.states, self._memory.states, strict=True):
            if self._wanted is None or field.name in self._wanted:
                fields[field.name] = np.empty((wave.size, n, *states.shape[1:]), dtype=states.dtype)
                if states.ndim > 1:
                    by_lane = states.reshape(n, width, *states.shape[1:])[:, : wave.size]
                    fields[field.name][:] = by_lane.swapaxes(0, 1)
                    continue
                part_lanes(states, np.uint64(width), np.uint64(wave.size), fields[field.name].ravel())
        logs = self._stats(calls, wave.size, seconds)
        found = []
        for lane, log in enumerate(logs):
            of_lane = {name: values[lane] for name, values in fields.items()}
            found.append(LaneRun(of_lane, wave.reason(lane), log, wave.aggregators(lane)))
        return found

    def _stats(self, calls: list[tuple[int, LaneAccount]], size: int, seconds: float) -> Iterator[StatsLog]:
        """Yield what each lane's supersteps did; of what the wave took, each has a share by its work."""
        counted, ran, messages = (
            np.concatenate(
                [getattr(account, name).reshape(-1, self._width)[:done, :size] for done, account in calls]
            ).T
            for name in ("counted", "ran", "messages")
        )
        directions = np.concatenate([account.direction[:done] for done, account in calls])
        lanes, steps = np.nonzero(counted)
        ends = np.cumsum(np.bincount(lanes, minlength=size))
        starts = ends - np.diff(ends, prepend=0)
        rows = np.zeros(steps.size, dtype=ROWS)
        rows["superstep"] = np.arange(steps.size) - starts[lanes]
        rows["direction"], rows["imbalance"] = directions[steps], 1.0
        rows["ran"], rows["messages"] = ran[lanes, steps], messages[lanes, steps]
        work = rows["ran"] + rows["messages"]
        rows["nanoseconds"] = work * (seconds * 1e9 / max(1, int(work.sum())))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            log = StatsLog()
            log.append_rows(rows[start:end], _DIRECTIONS)
            yield log


class _Wave:
    """The runs that are side by side.

    Attributes:
        size: How many.
        alive: The lanes that go on, a bit each.
        counts_idle: Those whose next superstep counts even where no vertex runs.
        asks_always: Whether `master()` runs after every superstep.
        params, values, totals: [k] each: of each lane its parameters, its aggregators' values, and totals.
        identity: What totals begin with.
        counts: What is counted of each lane.
    """

    def __init__(
        self, context: RunContext, programs: Sequence[Vertex], width: int, *, counts_idle: bool
    ) -> None:
        self.size, self.alive = len(programs), (1 << len(programs)) - 1
        self.counts_idle = self.alive if counts_idle else 0
        self._context = context
        derived = context.executable.program
        assert derived is not None
        self._derived = derived
        masters: list[MasterCompute | None] = []
        if derived.has_master:
            masters = [MasterCompute.of(context._replace(program=program)) for program in programs]
        self._masters = [master for master in masters if master is not None]
        self.asks_always = derived.has_master and not derived.has_phases
        self._stopped = self._cut = self._done = 0
        given = [context._replace(program=program).params() for program in programs]
        self.params = tuple(_of_lanes(values, width) for values in zip(*given, strict=True))
        start = Aggregates(derived.aggregators)
        self.identity = start.identity
        self.values = tuple(_of_lanes([value], width) for value in start.values)
        self.totals = tuple(_of_lanes([value], width) for value in start.identity)
        self.counts = LaneCounts(*(np.zeros(width, dtype=np.int64) for _ in range(4)))

    def aggregates(self, lane: int) -> Aggregates:
        """Return the aggregators of a lane, as their next superstep reads them."""
        found = Aggregates(self._derived.aggregators)
        found.take(tuple(array[lane] for array in self.values))
        return found

    def aggregators(self, lane: int) -> dict[str, Any]:
        """Return the values of a lane's aggregators as Python numbers."""
        pairs = zip(self._derived.aggregators, self.values, strict=True)
        return {aggregator.name: array[lane].tolist() for aggregator, array in pairs}

    def is_over(self, lane: int) -> bool:
        """Tell whether nothing is active and nothing in flight, or no vertex ran."""
        counts = self.counts
        is_idle = counts.ran[lane] == 0 and not self.counts_idle >> lane & 1
        return bool(is_idle or counts.active[lane] + counts.messages[lane] == 0)

    def reason(self, lane: int) -> Literal["converged", "max_supersteps", "stopped"]:
        """Return why a lane ended."""
        if self._stopped >> lane & 1:
            return "stopped"
        return "converged" if self.is_over(lane) and not self._cut >> lane & 1 else "max_supersteps"

    def ask_masters(self, end: int, num_left: Callable[[int], int], counted: NDArray[np.int64] | None) -> int:
        """Run master() of the lanes that had a superstep, or next_phase() of those whose phase is over.

        Returns the lanes whose vertices wake; `alive` has those that go on.

        Args:
            end: Where a lane stops at the latest.
            num_left: Counts the vertices of a lane that have not retired.
            counted: Whether each lane had a superstep; None for phases.
        """
        woken = 0
        for lane, master in enumerate(self._masters):
            bit = 1 << lane
            is_asked = self.is_over(lane) if counted is None else counted[lane]
            if self._done & bit or not is_asked:
                continue
            outcome, aggregates = Outcome(ended=self.is_over(lane)), self.aggregates(lane)
            superstep = int(self.counts.superstep[lane])
            wakes = master.run(
                outcome, superstep - 1, int(self.counts.messages[lane]), aggregates, self._context.exchange,
                counted=True, num_left=functools.partial(num_left, lane),
            )  # fmt: skip
            for array, value in zip(self.values, aggregates.values, strict=True):
                array[lane] = value
            goes_on, in_time = not outcome.ended, superstep < end
            self._stopped |= bit * outcome.stopped
            self._cut |= bit * (goes_on and not in_time)
            self._done |= bit * (not goes_on or not in_time)
            self.alive = (self.alive & ~bit) | bit * (goes_on and in_time)
            self.counts_idle = (self.counts_idle & ~bit) | bit * master.in_flight
            woken |= bit * (wakes and goes_on and in_time)
        return woken


def _of_lanes(values: Sequence[Any], width: int) -> Any:
    """Return the lanes' numbers, [width], or vectors, [width, length]; lanes beyond have those of the last.

    Of tables they all have one.
    """
    if isinstance(values[0], tuple):
        return values[0]
    return np.array([*values, *[values[-1]] * (width - len(values))])
