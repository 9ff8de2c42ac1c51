"""Rows of edges that follow the versions of a graph on several GPUs that write into each other's memory.

Each rank changes its part's rows as one GPU does (`edited_rows.py`), by local ids. Vertices of other ranks become
ghosts in spare slots: whose, both ranks find from the batch, which all are given. What a program goes on with is kept
for ghosts too, in memory that their owners write. Kernels of all ranks meet within a launch
(`kernels/cuda/meeting.cuh`), so hosts need not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Kernel, fits
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.columns import array_at
from sigps.engine.gpu.device_fields import DeviceFields
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.engine import GpuProgram
from sigps.engine.gpu.following import GpuFollowingEngine
from sigps.engine.gpu.peer_buffers import give_back, taken_buffers
from sigps.engine.gpu.peers import GpuPeerEngine
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import DeviceError, ExchangeError, KernelError
from sigps.graph.versions.row_changes import distinct
from sigps.kernels.cuda.abi import copy_into, structure

__all__ = ["GpuRankedEngine", "NewGhosts"]

_THERE = structure("GhostsThere").dtype
_ORDERS = structure("Orders").dtype
_MEETINGS, _FACTS = structure("Meetings").dtype, structure("RankFacts").dtype
_MOST_RANKS = _MEETINGS["told_last"].shape[0]
_ARRAYS = "keys", "first_keys", "sent", "told", "numbers", "told_numbers"
_FULL, _MISSING, _HUBS, _REFUSED = 1, 2, 4, 8
"""Bits of `State` of `trimming.cuh`."""


@dataclass(frozen=True, eq=False)
class NewGhosts:
    """Vertices that become ghosts by a batch, at this rank or of its own.

    Attributes:
        of_rank: [ghosts here] their owners, ascending.
        gids: [ghosts here] of each owner's ascending.
        at_rank: [slots] which rank has this rank's vertices as ghosts, ascending.
        own: [slots] their local ids on the device, of each rank's by ascending gid.
    """

    of_rank: NDArray[np.int64]
    gids: NDArray[np.int64]
    at_rank: NDArray[np.int64]
    own: NDArray[np.int64]


class GpuRankedEngine(GpuFollowingEngine):
    """A program that goes on on one of several ranks. All verbs are collective, but those that only read.

    Args:
        native: As `GpuFollowingEngine`'s, and so are the next three.
        params: See there.
        subgraph: See there.
        exchange: See there.
        patience: As `GpuPeerEngine`'s.
        agree: Returns the first of all ranks' texts that is not empty, or an empty one. Collective.
        owner_of: Returns the ranks that own vertices, by gid.
        more: Those of the engine on one GPU.

    Attributes:
        num_edges_everywhere: Edges of all ranks, as the last run or going on found them.
    """

    _engine: GpuPeerEngine
    _num_ghosts: NDArray[np.int64]  # of each rank
    _most_ghosts: NDArray[np.int64]
    _num_slots: NDArray[np.int64]  # for each rank
    _have: NDArray[Any]  # [num_owned], by local id on the device: bits of the ranks that have it as a ghost
    _beside: list[tuple[tuple[Any, str], NDArray[Any]]]
    _rank_kernels: dict[str, Kernel]
    _is_launched = False  # and not read yet

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        patience: float,
        agree: Callable[[str], str],
        owner_of: Callable[[NDArray[np.int64]], NDArray[Any]],
        **more: Any,
    ) -> None:
        self._patience, self._agreed, self._owner_of = patience, agree, owner_of
        self._run_buffers, self._key_buffers = taken_buffers(exchange), taken_buffers(exchange)
        try:
            super().__init__(native, params, subgraph, exchange, **more)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave what others write to for a later stream."""
        give_back(self._key_buffers)
        give_back(self._run_buffers)

    def new_ghosts(
        self,
        sources: NDArray[np.int64],
        owners: NDArray[np.int32],
        ranks: NDArray[np.int32],
    ) -> NewGhosts | None:
        """Return which vertices become ghosts by new edges; None where there is no room for one that this rank sees.

        Local; the owner of a vertex and the rank that gets it as a ghost find the same.

        Args:
            sources: [edges], by gid, of the whole batch.
            owners: [edges], theirs.
            ranks: [edges], which have their targets.
        """
        rank, n = self._exchange.rank, self._subgraph.num_vertices
        crosses = owners != ranks
        nothing = np.empty(0, dtype=np.int64)
        if not crosses.any():
            return NewGhosts(nothing, nothing, nothing, nothing)
        of_rank = gids = at_rank = own = nothing
        found = sources[crosses & (ranks == rank)]
        found = found[self._lids_by_gid[found] < 0]
        if found.size:
            of_rank, gids = np.divmod(distinct(self._owner_of(found) * np.int64(n) + found), n)
            if (
                self._num_ghosts + np.bincount(of_rank, minlength=self._num_ghosts.size) > self._most_ghosts
            ).any():
                return None
        here = crosses & (owners == rank)
        lids, to = self._lids_by_gid[sources[here]], ranks[here]
        has_none = (self._have[lids] >> to.astype(self._have.dtype)) & 1 == 0
        if has_none.any():
            pairs = distinct(to[has_none] * np.int64(n) + sources[here][has_none])
            at_rank, vertices = np.divmod(pairs, n)
            own = self._lids_by_gid[vertices].astype(np.int64)
            if (
                self._num_slots + np.bincount(at_rank, minlength=self._num_slots.size) > self._most_slots
            ).any():
                return None
        return NewGhosts(of_rank, gids, at_rank, own)

    def take_ghosts(self, ghosts: NewGhosts, seen: NDArray[np.int64]) -> None:
        """Let vertices be ghosts from now on; `follow_batch` tells the device.

        Args:
            ghosts: Those of the next batch.
            seen: [ghosts here], the ids that compute() sees.
        """
        if not (ghosts.gids.size or ghosts.own.size):
            return
        lids, slots = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if ghosts.gids.size:
            numbers, self._num_ghosts = _numbered(ghosts.of_rank, self._num_ghosts)
            lids = self._ghost_lids(ghosts.of_rank, numbers)
            self._lids_by_gid[ghosts.gids] = lids
        if ghosts.own.size:
            numbers, self._num_slots = _numbered(ghosts.at_rank, self._num_slots)
            slots = self._slot_bounds[ghosts.at_rank] + numbers
            bits = np.left_shift(1, ghosts.at_rank).astype(self._have.dtype)
            np.bitwise_or.at(self._have, ghosts.own, bits)
        live = self._live
        live["num_taken"], live["num_new_ghosts"] = slots.size, lids.size
        self._beside = [
            ((live, "slots_taken"), slots.astype(np.uint32)),
            ((live, "vertices"), ghosts.own.astype(np.uint32)),
            ((live, "new_ghosts"), lids.astype(np.uint32)),
            ((live, "new_ids"), seen.astype(np.int64, copy=False)),
        ]
        if self._num_ordered:
            self._beside.append(((live, "new_order"), ghosts.gids.astype(np.uint32)))

    def kept(self) -> DeviceFields | None:
        """Return the fields as they are now, in the order of gids, kept on the device; None where there is no room."""
        if not fits(sum(values.nbytes for values in self._states)):
            return None
        return self._engine.kept_fields()

    def left(self) -> Mapping[str, NDArray[Any]]:
        """Return the fields as they are now, in the order of gids: kept on the device where there is room."""
        if (kept := self.kept()) is not None:
            return kept
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
        self._live["has_deletes"] = has_deletes
        self._begin_batch()
        beside, self._beside = self._beside, []
        self.follow_ends(
            inserts, deletes, drops_loops=drops_loops, drops_repeats=drops_repeats, beside=beside
        )
        self._live["num_taken"] = self._live["num_new_ghosts"] = 0

    def _edit(self) -> None:
        live = self._live
        if most := max(int(live["num_taken"]), int(live["num_new_ghosts"])):
            self._launch_plain("take_slots_thread_mapped", most)
        super()._edit()

    def _come_to_terms(self) -> Any:
        """Launch what ranks meet in; return what a batch came to, a `LiveCounts`. Waits for the device.

        Where `everywhere` has a state no rank goes on; what is an obstacle of one is one of all.
        """
        self._live["hubs_left"] = max(0, self._engine._graph.num_hubs - self._num_hubs)
        self._is_launched = True
        self._launch_again()
        found = self._read()
        self._is_launched = False
        everywhere = found["everywhere"]
        if everywhere["states"] & (_MISSING | _HUBS | _REFUSED):
            self._agree()
        else:
            self.num_edges_everywhere += int(everywhere["num_added"]) - int(everywhere["num_removed"])
        return found

    def _read(self) -> Any:
        """Return what a batch came to, after rows of all ranks have been made room for; waits for the device."""
        if not self._is_launched:
            return super()._read()
        found = self._met()
        while found["everywhere"]["states"] & (_FULL | _REFUSED) == _FULL:
            if found["is_full"]:
                self._make_room(found)
            self._launch_again()
            found = self._met()
        if not self._is_read:
            self._note_changes(found)
        return found

    def _met(self) -> Any:
        """Return what a launch came to in which GPUs met; waits for the device."""
        found = self._batches.read()
        if lost := int(found["everywhere"]["lost"]):
            raise ExchangeError(
                "it did not come to where ranks meet in time: it hangs, or its process is lost",
                rank=lost - 1,
                superstep=self._engine.superstep,
            )
        return found

    def _launch_again(self) -> None:
        if self._is_launched:
            copy_into("batch", self._live, self._batches.batch)
            self._launch_together(np.uint32(_REFUSED if self.obstacle else 0))

    @abstractmethod
    def _launch_together(self, states: np.uint32) -> None:
        """Launch what ranks meet in, after rows have changed; `states`: bits of `State` that this rank begins with."""

    def _begin_batch(self) -> None:
        """Do what is to be done before rows change. Collective; does not wait."""

    def _launch_plain(self, name: str, num_items: int, *given: Any) -> None:
        blocks = num_blocks(self._native.gpu, num_items)
        self._rank_kernels[name].launch(blocks, THREADS, (self._live, *given))

    def _agree(self) -> None:
        self.obstacle = self._agreed(self.obstacle)
        self.num_edges_everywhere = int(self._exchange.gather(np.array([self._num_edges])).sum())

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
        self._is_launched, self._beside = False, []
        assert subgraph.gids is not None
        assert subgraph.ghost_bounds is not None
        self._lids_by_gid = np.full(subgraph.num_vertices, -1, dtype=np.int32)
        self._lids_by_gid[subgraph.gids] = graph.numbering.lids_on_host
        self._num_ghosts = np.diff(subgraph.ghost_bounds)
        self._most_ghosts = self._num_ghosts + np.array(graph.numbering.spare)
        self._num_slots = np.array([lids.size for lids in subgraph.halo])
        self._most_slots = self._num_slots + np.array(graph.numbering.spare)
        self._have = np.zeros(graph.num_owned, np.min_scalar_type((1 << len(subgraph.halo)) - 1))
        for rank, lids in enumerate(subgraph.halo):
            self._have[graph.numbering.lids_on_host[lids]] |= self._have.dtype.type(1 << rank)
        super()._lay_out()
        if self.obstacle:
            return
        weight = "uint8" if self._column is None else graph.incoming.column(self._column).dtype.name
        self._rank_kernels = self._link(weight)

    def _lay_out_rows(self) -> None:
        """Have an obstacle on all ranks where rows do not fit one's GPU: others would wait for it."""
        try:
            super()._lay_out_rows()
        except KernelError:  # which all ranks meet
            raise
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

    def _row_order(self) -> NDArray[np.uint32]:
        graph, subgraph = self._engine._graph, self._subgraph
        assert subgraph.gids is not None
        order = np.zeros(graph.num_lids, dtype=np.uint32)
        order[graph.numbering.lids_on_host] = subgraph.gids
        return order

    def _ghost_lids(self, ranks: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids on the device of some ghosts, by their owners and their numbers among theirs."""
        ghosts = self._engine._graph.numbering.ghosts
        assert ghosts is not None
        hot = ghosts.num_hot[ranks]
        found: NDArray[np.int64] = np.where(
            numbers < hot, ghosts.hot[ranks] + numbers, ghosts.cold[ranks] + numbers - hot
        )
        return found

    @abstractmethod
    def _link(self, weight: str) -> dict[str, Kernel]:
        """Return the kernels that ranks meet in; `weight`: the type of an edge's number."""

    def _share(self, key: np.dtype[Any], *, has_numbers: bool) -> None:
        """Make room for what is kept of ghosts, and find out where others have their ghosts of this rank's vertices.

        Args:
            key: The type of a key.
            has_numbers: Whether vertices have numbers besides.
        """
        import cupy

        graph, exchange = self._engine._graph, self._exchange
        ghosts, n = graph.numbering.ghosts, graph.num_lids
        assert ghosts is not None
        layout = self._engine.halo_layout()
        self._slots, self._copies, self._bounds = layout.lids, layout.copies, layout.bounds
        self._slot_bounds = cupy.asnumpy(layout.bounds).astype(np.int64)
        listed = 4 * max(1, int(ghosts.listed[-1]))
        of_numbers = (4 * n, listed) if has_numbers else (0, 0)
        facts = 2 * exchange.size * 2 * _FACTS.itemsize  # by turns, 64 bits a half
        sizes = [n * key.itemsize, n * key.itemsize, n, listed, *of_numbers, facts]
        offsets = np.cumsum([0, *(-(-size // 256) * 256 for size in sizes)]).tolist()
        buffers = self._key_buffers
        buffers.make(offsets[-1], exchange, lambda: None)
        kinds = (key, key, *(np.dtype(kind) for kind in (np.uint8, *3 * (np.uint32,))))
        self._all_keys, self._first_keys, self._all_sent, self._told, self._numbers, self._told_numbers = (
            array_at(buffers.own.data + at, size // kind.itemsize, kind)
            for at, size, kind in zip(offsets, sizes, kinds, strict=False)
        )
        at = buffers.own.data + offsets[-2]
        array_at(at, facts, np.dtype(np.uint8)).fill(0)
        cupy.cuda.get_current_stream().synchronize()  # before others may write there
        begins = np.stack([ghosts.num_hot, ghosts.hot[:-1], ghosts.cold[:-1], ghosts.listed[:-1]], axis=1)
        gathered = exchange.gather(np.array([*offsets[:-1], *begins.ravel()], dtype=np.int64))
        there = np.zeros(exchange.size, dtype=_THERE)
        meetings = np.zeros((), dtype=_MEETINGS)
        meetings["told_begins"][: exchange.size] = ghosts.listed[:-1]
        meetings["timeout"] = self._engine._lease["halo"]["timeout"]
        for rank, (part, address, row) in enumerate(zip(there, buffers.addresses, gathered, strict=True)):
            for name, at in zip(_ARRAYS, row.tolist(), strict=False):
                part[name] = address + at
            meetings["there"][rank] = address + int(row[len(_ARRAYS)])
            *lids, first_listed = row[len(_ARRAYS) + 1 :].reshape(exchange.size, 4)[exchange.rank].tolist()
            part["num_hot"], part["first_hot"], part["first_cold"] = lids
            part["told"] += 4 * first_listed
            part["told_numbers"] += 4 * first_listed
        self._there = cupy.asarray(there.view(np.uint8))
        self._meetings = cupy.asarray(np.frombuffer(meetings.tobytes(), np.uint8))

    def _fill_live(self) -> None:
        super()._fill_live()
        live, exchange = self._live, self._exchange
        for name, array in (
            ("keys", self._all_keys), ("ghosts_there", self._there), ("slot_bounds", self._bounds),
            ("slots", self._slots), ("copies", self._copies), ("told", self._told),
            ("told_numbers", self._told_numbers), ("meetings", self._meetings), ("numbers", self._numbers),
        ):  # fmt: skip
            live[name] = array.data.ptr
        live["num_ranks"], live["rank"] = exchange.size, exchange.rank
        live["num_lids"] = self._engine._graph.num_lids
        narrow = self._engine._variant.compiled.defines["SIGPS_ID"] == "int32_t"
        ids = self._engine._graph.numbering.ids(narrow=narrow)
        live["narrow_ids" if narrow else "wide_ids"] = ids.data.ptr
        if self._num_ordered:
            live["order"] = self._batches.batch["order"]


def _numbered(
    ranks: NDArray[np.int64], before: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each entry among those of its rank, behind those of before; and how many there are then.

    Args:
        ranks: [entries], ascending.
        before: [ranks] how many there were.
    """
    counts = np.bincount(ranks, minlength=before.size)
    firsts = before - np.concatenate(([0], np.cumsum(counts)[:-1]))
    return firsts[ranks] + np.arange(ranks.size), before + counts
