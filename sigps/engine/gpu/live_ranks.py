"""A monotone program that goes on from its last states on several GPUs that write into each other's memory.

Each rank changes its part's rows as one GPU does (`edited_rows.py`), by local ids; vertices of other ranks become
ghosts in spare slots. Each keeps the keys of its ghosts, which their owners write there after every fixed point. So
what a batch needs is known where the target of an edge is:

* Trimming goes in rounds among hosts. In each a rank trims until it finds nothing more, with the keys of ghosts as they
  were; then ghosts of what was trimmed are looked at, until no rank has any.
* Who is to send to a vertex of this rank is marked here, ghosts too, and no other rank needs to know: it has read what
  they send. So the lease of all ranks begins with marks in bits, and nothing crosses before its first superstep.

Hosts meet once a batch, once for each round, and once more before the lease.

Where edges add nothing to keys, vertices are numbered as on one GPU, before the first batch with deletes, and those
that lost their numbers before the next one: each rank numbers what it can, and then on from ghosts that their owners
numbered, until none has any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.device.transfers import copy_within
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.direction import PULL_GAIN
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.columns import array_at
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.engine import GpuProgram
from sigps.engine.gpu.following import live_macros
from sigps.engine.gpu.live import AT_A_TIME, MOST_STAMP, ROUND, SUPERSTEP, TRIMMING, GpuLiveEngine
from sigps.engine.gpu.peer_buffers import give_back, taken_buffers
from sigps.engine.gpu.peers import GpuPeerEngine
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import StatsLog
from sigps.errors import DeviceError
from sigps.kernels.cuda.abi import structure

__all__ = ["GpuRankedLiveEngine"]

_THERE = structure("GhostsThere").dtype
_ORDERS = structure("Orders").dtype
_MOST_RANKS = structure("Live").dtype["told_first"].shape[0]
_ARRAYS = "keys", "first_keys", "sent", "told", "numbers", "told_numbers"
_NO_NUMBER, _MOST_NUMBER = 0xFFFFFFFF, 1 << 31


class GpuRankedLiveEngine(GpuLiveEngine):
    """A monotone program on one of several ranks. All verbs are collective, but those that only read.

    Args:
        native: As `GpuLiveEngine`'s, and so are the next three.
        params: See there.
        subgraph: See there.
        exchange: See there.
        has_witnesses: See there.
        patience: As `GpuPeerEngine`'s.
        agree: Returns the first of all ranks' texts that is not empty, or an empty one. Collective.

    Attributes:
        num_edges_everywhere: Edges of all ranks, as the last run or going on found them.
    """

    _engine: GpuPeerEngine
    _num_ghosts: NDArray[np.int64]  # of each rank
    _most_ghosts: NDArray[np.int64]
    _num_slots: NDArray[np.int64]  # for each rank
    _next_number = 1
    _step_launched: tuple[str, tuple[Any, ...]] | None

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        has_witnesses: bool,
        patience: float,
        agree: Callable[[str], str],
    ) -> None:
        self._patience, self._agreed = patience, agree
        self._run_buffers, self._key_buffers = taken_buffers(exchange), taken_buffers(exchange)
        try:
            super().__init__(native, params, subgraph, exchange, has_witnesses=has_witnesses)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave what others write to for a later stream."""
        give_back(self._key_buffers)
        give_back(self._run_buffers)

    def take_ghosts(
        self,
        sources: NDArray[np.int64],
        owner_of: Callable[[NDArray[np.int64]], NDArray[Any]],
        seen: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    ) -> bool:
        """Let the sources of new edges be ghosts, where they are other ranks'; False where some rank has no room.

        Args:
            sources: By gid, of edges that end in this rank's vertices.
            owner_of: Returns the ranks that own vertices.
            seen: Returns the ids that compute() sees. Collective.
        """
        import cupy

        missing = np.unique(sources[self._lids_by_gid[sources] < 0])
        owners = owner_of(missing)
        after = self._num_ghosts + np.bincount(owners, minlength=self._num_ghosts.size)
        cupy.cuda.get_current_stream().synchronize()  # others' keys are there after the exchange
        facts = self._exchange.gather(np.array([missing.size, (after > self._most_ghosts).any()]))
        if facts[:, 1].any():
            return False
        if not facts[:, 0].any():
            return True
        numbering, wanted = self._engine._graph.numbering, []
        for rank, first in enumerate(self._num_ghosts.tolist()):
            mine = missing[owners == rank]
            self._lids_by_gid[mine] = self._ghost_lids(rank, first + np.arange(mine.size))
            wanted.append(mine)
        self._num_ghosts = after
        narrow = self._engine._variant.compiled.defines["SIGPS_ID"] == "int32_t"
        ids, numbers = numbering.ids(narrow=narrow), seen(missing)
        if missing.size:
            at = cupy.asarray(self._lids_by_gid[missing].astype(np.int64))
            ids[at] = cupy.asarray(numbers.astype(ids.dtype))
        slots, vertices = [], []
        for rank, gids in enumerate(self._exchange.swap(wanted)):
            slots.append(self._slot_bounds[rank] + self._num_slots[rank] + np.arange(gids.size))
            vertices.append(numbering.lids_on_host[self._subgraph.local_ids(gids)])
            self._num_slots[rank] += gids.size
        taken, of = (cupy.asarray(np.concatenate(parts).astype(np.uint32)) for parts in (slots, vertices))
        if taken.size:
            self._launch_plain("take_slots_thread_mapped", taken.size, np.uint32(taken.size), taken, of)
        self._engine.wait_for_hosts()
        return True

    def left(self) -> Mapping[str, NDArray[Any]]:
        """Return the fields as they are now, in the order of gids: kept on the device where there is room."""
        if fits(sum(values.nbytes for values in self._states)):
            return self._engine.kept_fields()
        by_gid = self._subgraph.by_gid
        return {f.name: self.state(f.name)[by_gid] for f in self._native.program.states}

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids on the device of vertices and ghosts; -1 where one is neither."""
        return self._lids_by_gid[gids].astype(np.int64)

    def num_in_edges(self, lids: NDArray[np.int64]) -> int:
        """Return how many in-edges owned vertices have, by the host's local ids."""
        import cupy

        degrees = cupy.asnumpy(self._engine._graph.incoming.rows.degrees)
        return int(degrees[self._engine._graph.numbering.lids_on_host[lids]].sum())

    def follow_batch(
        self,
        inserts: EdgeChanges,
        deletes: EdgeChanges,
        *,
        has_deletes: bool,
        drops_loops: bool,
        drops_repeats: bool,
    ) -> None:
        """Change rows as a batch asks for; `follow_ends` of this rank's edges, by local ids on the device.

        Args:
            inserts: See there.
            deletes: See there.
            has_deletes: Whether any rank has some.
            drops_loops: See there.
            drops_repeats: See there.
        """
        self._has_deletes = has_deletes
        if has_deletes and not self._adds:
            self._number_together()
        self.follow_ends(inserts, deletes, drops_loops=drops_loops, drops_repeats=drops_repeats)

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where it costs too much, or cannot be done."""
        engine, live = self._engine, self._live
        nothing = np.zeros_like(self._told_begins)
        self._set_told(nothing, nothing)
        cost = self._trim(spending.left // TRIMMING) if self._has_deletes else 0
        if cost is None:
            return None
        parity = engine.superstep & 1
        live["senders"], live["records"] = engine._lease["sent"][parity], engine._lease["records"][parity]
        found = self._step("mark_among_ranks")
        facts = self._exchange.gather(
            np.array(
                [bool(self.obstacle), self._num_edges, int(found["num_listed"]), int(found["num_sent_edges"])]
            )
        )
        if facts[:, 0].any():
            self._agree()
            return None
        self.num_edges_everywhere = int(facts[:, 1].sum())
        edges = int(facts[:, 3].sum())
        if not spending.take(cost + edges):
            return None
        self._changes = bool(found["num_listed"] or edges)
        if self._has_witnesses and facts[:, 2].any():  # those that are held up lose their numbers
            self._has_numbers = False
        if not edges:
            return StatsLog()
        engine.set_marked(edges)
        stats, ended = StatsLog(), False
        while not ended:
            outcome = engine.lease(max(AT_A_TIME, len(stats)))
            ended = outcome.ended
            stats.extend(outcome.stats)
            cost = outcome.stats.num_messages + len(outcome.stats) * SUPERSTEP
            if not ended and not spending.take(cost):
                return None
        self._tell(tells_all=False)
        return stats

    def _trim(self, most_cost: int) -> int | None:
        """Trim on all ranks; return what it cost together, None where that was too much or cannot be done."""
        live, rank = self._live, self._exchange.rank
        live["most_cost"] = most_cost
        before = np.zeros((self._exchange.size, self._exchange.size), dtype=np.int64)
        rounds = cost = 0
        for step in range(1 << 30):
            if self._stamp > MOST_STAMP:
                self._stamps[:] = 0
                self._stamp = 1
            live["stamp"] = self._stamp
            found = self._step("trim_among_ranks", np.uint32(step > 0))
            more = int(found["num_rounds"]) - rounds
            rounds += more
            self._stamp += more + 1
            told = found["num_told"][: self._exchange.size].astype(np.int64)
            facts = self._exchange.gather(
                np.array(
                    [bool(self.obstacle), int(found["is_given_up"]), more, int(found["num_read"]), *told]
                )
            )
            if facts[:, 0].any():
                self._agree()
                return None
            cost += (1 + int(facts[:, 2].max())) * ROUND
            now = facts[:, 4:]
            if facts[:, 1].any():
                return None
            if (now == before).all():
                self._set_told(np.zeros_like(self._told_begins), now[:, rank])
                return cost + int(facts[:, 3].sum()) // PULL_GAIN
            self._set_told(before[:, rank], now[:, rank])
            before = now
        raise AssertionError("a vertex is trimmed once")

    def _set_told(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        """Let kernels read what each rank has told from one number to another."""
        begins, live = self._told_begins, self._live
        live["told_first"][: begins.size], live["told_last"][: begins.size] = begins + first, begins + last

    def _number_together(self) -> None:
        """Number vertices that have no number, from the fixed point of before and its rows. Collective."""
        import cupy

        live, exchange = self._live, self._exchange
        live["batch"] = self._batches.batch
        if not self._has_numbers or self._next_number > _MOST_NUMBER:
            self._numbers.fill(_NO_NUMBER)
            self._has_numbers, self._next_number = True, 1
        self._engine.wait_for_hosts()  # others clear numbers of ghosts here
        self._orders.fill(0)
        before = np.zeros((exchange.size, exchange.size), dtype=np.int64)
        blocks, step = num_blocks(self._native.gpu, self._num_owned), 0
        while True:
            given = live, np.uint32(min(step, 2)), np.uint32(self._next_number)
            self._rank_kernels["number_among_ranks"].launch(blocks, THREADS, given, cooperative=True)
            found = cupy.asnumpy(self._orders).view(_ORDERS)[0]
            told = found["num_told"][: exchange.size].astype(np.int64)
            facts = exchange.gather(np.array([int(found["next"]), *told]))
            self._next_number = max(self._next_number, int(facts[:, 0].max()))
            now = facts[:, 1:]
            if step and (now == before).all():
                return
            self._set_told(before[:, exchange.rank], now[:, exchange.rank])
            before, step = now, step + 1

    def _step(self, name: str, *given: Any) -> Any:
        """Launch a kernel of going on, and return what the batch came to so far."""
        self._step_launched = name, given
        self._launch_again()
        found = self._batches.read() if self._is_read else self._read()
        self._step_launched = None
        return found

    def _launch_again(self) -> None:
        if self._step_launched is None:
            return
        name, given = self._step_launched
        self._live["batch"] = self._batches.batch
        blocks = num_blocks(self._native.gpu, max(32 * self._size, int(self._live["num_words"]) // 8))
        self._rank_kernels[name].launch(blocks, THREADS, (self._live, *given), cooperative=True)

    def _launch_plain(self, name: str, num_items: int, *given: Any) -> None:
        blocks = num_blocks(self._native.gpu, num_items)
        self._rank_kernels[name].launch(blocks, THREADS, (self._live, *given))

    def _tell(self, *, tells_all: bool) -> None:
        """Write keys to the ranks that have ghosts. Does not wait: others read them after hosts have met."""
        self._launch_plain("tell_keys_thread_mapped", self._num_owned, np.uint32(tells_all))
        self._launch_plain("take_keys_thread_mapped", self._num_owned)

    def _agree(self) -> None:
        self.obstacle = self._agreed(self.obstacle)
        self.num_edges_everywhere = int(self._exchange.gather(np.array([self._num_edges])).sum())

    def _note_first(self, states: list[Any]) -> None:
        super()._note_first(states)
        n = self._num_owned
        copy_within(self._first_keys[:n], states[self._key])
        copy_within(self._all_sent[:n], self._sent)
        self._first[self._key], self._sent = self._first_keys, self._all_sent

    def _end_run(self) -> None:
        super()._end_run()
        self._tell(tells_all=True)

    def _number(self, *, anew: bool = False) -> None:
        """Number nothing now: see `follow_batch`."""

    def _made(self) -> GpuPeerEngine:
        engine = GpuPeerEngine(
            self._native,
            self._params,
            self._subgraph,
            self._exchange,
            patience=self._patience,
            buffers=self._run_buffers,
            stream="never",
            tiles="never",
            is_edited=True,
        )
        self.aggregates = engine.aggregates
        return engine

    def _find_obstacle(self) -> str:
        obstacle = super()._find_obstacle()
        if self._exchange.size > _MOST_RANKS:
            obstacle = f"incremental runs are built for {_MOST_RANKS} GPUs at most"
        return self._agreed(obstacle)

    def _lay_out(self) -> None:
        import cupy

        graph, subgraph = self._engine._graph, self._subgraph
        graph.out_degrees = cupy.maximum(graph.out_degrees, 1)  # who sends to nobody now may get an edge
        graph.kept.clear()
        self._step_launched = None
        self._has_deletes = False
        assert subgraph.gids is not None
        assert subgraph.ghost_bounds is not None
        self._lids_by_gid = np.full(subgraph.num_vertices, -1, dtype=np.int32)
        self._lids_by_gid[subgraph.gids] = graph.numbering.lids_on_host
        self._num_ghosts = np.diff(subgraph.ghost_bounds)
        self._most_ghosts = self._num_ghosts + np.array(graph.numbering.spare)
        self._num_slots = np.array([lids.size for lids in subgraph.halo])
        super()._lay_out()
        if self.obstacle:
            return
        weight = "uint8" if self._column is None else graph.incoming.column(self._column).dtype.name
        given = self._key_type, weight, self._takes_min, self._column is not None, self._adds
        self._rank_kernels = _kernels(self._native.gpu, *given)

    def _lay_out_rows(self) -> None:
        """Have an obstacle on all ranks where rows do not fit one's GPU: others would wait for it."""
        try:
            super()._lay_out_rows()
        except (DeviceError, MemoryError) as error:
            self.obstacle = f"rows that follow do not fit the GPU: {error}"
        self.obstacle = self._agreed(self.obstacle)

    def _point(self) -> None:
        super()._point()
        graph, lease = self._engine._graph, self._engine._lease
        for arguments in ("in", "out"):
            lease[arguments]["out_degrees"] = graph.out_degrees.data.ptr

    def _note_edges(self) -> None:
        self._engine._lease["num_in_edges"] = self._num_edges  # by `pull_cost` all choose the same direction

    @property
    def _lids_of_given(self) -> None:
        return None

    def _ghost_lids(self, rank: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids on the device of some ghosts of a rank's, by their numbers among these."""
        ghosts = self._engine._graph.numbering.ghosts
        assert ghosts is not None
        hot = ghosts.num_hot[rank]
        found: NDArray[np.int64] = np.where(
            numbers < hot, ghosts.hot[rank] + numbers, ghosts.cold[rank] + numbers - hot
        )
        return found

    def _make_room_for_trimming(self) -> None:
        """Find out, too, where others have their ghosts of this rank's vertices."""
        import cupy

        super()._make_room_for_trimming()
        graph, exchange = self._engine._graph, self._exchange
        ghosts, n, key = graph.numbering.ghosts, graph.num_lids, self._keys.dtype
        assert ghosts is not None
        self._fates = cupy.zeros(n, dtype=cupy.uint8)
        layout = self._engine.halo_layout()
        self._slots, self._copies, self._bounds = layout.lids, layout.copies, layout.bounds
        self._slot_bounds = cupy.asnumpy(layout.bounds).astype(np.int64)
        self._told_begins = ghosts.listed[:-1].astype(np.int64)
        listed = 4 * max(1, int(ghosts.listed[-1]))
        of_numbers = (0, 0) if self._adds else (4 * n, listed)
        sizes = [n * key.itemsize, n * key.itemsize, n, listed, *of_numbers]
        offsets = np.cumsum([0, *(-(-size // 256) * 256 for size in sizes)]).tolist()
        buffers = self._key_buffers
        buffers.make(offsets[-1], exchange)
        kinds = map(np.dtype, (key, key, np.uint8, np.uint32, np.uint32, np.uint32))
        self._all_keys, self._first_keys, self._all_sent, self._told, self._numbers, self._told_numbers = (
            array_at(buffers.own.data + at, size // kind.itemsize, kind)
            for at, size, kind in zip(offsets, sizes, kinds, strict=False)
        )
        begins = np.stack([ghosts.num_hot, ghosts.hot[:-1], ghosts.cold[:-1], ghosts.listed[:-1]], axis=1)
        gathered = exchange.gather(np.array([*offsets[:-1], *begins.ravel()], dtype=np.int64))
        there = np.zeros(exchange.size, dtype=_THERE)
        for part, address, row in zip(there, buffers.addresses, gathered, strict=True):
            for name, at in zip(_ARRAYS, row.tolist(), strict=False):
                part[name] = address + at
            *lids, first_listed = row[len(_ARRAYS) :].reshape(exchange.size, 4)[exchange.rank].tolist()
            part["num_hot"], part["first_hot"], part["first_cold"] = lids
            part["told"] += 4 * first_listed
            part["told_numbers"] += 4 * first_listed
        self._there = cupy.asarray(there.view(np.uint8))

    def _fill_live(self) -> None:
        super()._fill_live()
        live, exchange = self._live, self._exchange
        for name, array in (
            ("keys", self._all_keys), ("ghosts_there", self._there), ("slot_bounds", self._bounds),
            ("slots", self._slots), ("copies", self._copies), ("told", self._told),
            ("told_numbers", self._told_numbers),
        ):  # fmt: skip
            live[name] = array.data.ptr
        live["num_ranks"], live["rank"] = exchange.size, exchange.rank


@functools.cache
@spent_on("compile")
def _kernels(
    gpu: Gpu, key: str, weight: str, takes_min: bool, has_column: bool, adds: bool
) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    macros = live_macros(key, weight, takes_min, has_column, adds, 0)
    module = Module(link_kernel("live_ranks", gpu.arch, macros))
    names = (
        "trim_among_ranks",
        "mark_among_ranks",
        "tell_keys_thread_mapped",
        "take_slots_thread_mapped",
        "take_keys_thread_mapped",
        "number_among_ranks",
    )
    return {name: module.kernel(name) for name in names}
