"""In-edges that stay packed: the first pages on the GPU, the others in pinned memory of its host.

Kernels read them page by page (`kernels/cuda/packed_rows.cuh`): what is not on the device crosses packed.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module, check_fits, waiter_for_device
from sigps.device.host_block import HostBlock
from sigps.engine.gpu.packed_places import (
    MOST_HEADS,
    KeyTables,
    LidsOfRows,
    PlacesInPages,
    arcs_of_spans,
    bytes_of_heads,
    column_places,
    first_words,
    head_rows,
    key_tables,
    lids_of_rows,
    list_bytes,
    order_of_chains,
    scratch_words,
    span_numbers,
    walk_bytes,
)
from sigps.engine.gpu.page_feed import Loads, PageFeed, cut_loads, state_of_feed
from sigps.engine.gpu.page_reading import PageHeaders, PageReading, num_readers
from sigps.engine.gpu.stored_rows import StoredRows
from sigps.engine.gpu.streamed_graph import StreamedGraph
from sigps.engine.partition.crossing_edges import CrossingEdges
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import DeviceError
from sigps.host_memory import available_memory
from sigps.kernels.cuda.lease import PACKED_ROWS

if TYPE_CHECKING:
    pass

__all__ = ["NO_PAGE", "PackedEdges", "PackedGraph"]

NO_PAGE = 0xFFFFFFFF
"""What `damaged` is where no page is."""


class PackedEdges:
    """The pages of a graph's in-edges, the first ones on the device.

    Args:
        edges: The edges; local ids of owned vertices are the numbers of rows.
        places: Where rows are in pages.
        resident_bytes: What pages on the device may take.
        columns: Those that are read with them.
        host_bytes: What pages in pinned memory may take; the others stay on disk. None for no limit.
        rank: Whose they are, for errors.
        lids: Of a part, the local ids of rows that may be ends; None where they are the numbers of rows.

    Attributes:
        num_resident: Words on the device.
        num_words: Words of all pages.
        host_bytes: What they take of the host.

    Raises:
        GraphError: If a page is damaged, or cannot be read.
        DeviceError: If the host lacks memory for them.
    """

    def __init__(
        self,
        edges: StreamedEdges,
        places: PlacesInPages,
        resident_bytes: int,
        columns: Sequence[str],
        *,
        host_bytes: int | None = None,
        rank: int = 0,
        lids: LidsOfRows | None = None,
    ) -> None:
        import cupy

        self._edges, packed = edges, edges.rows.packed
        self._of_feed: dict[str, Any] = {}
        table = packed.table
        words = first_words(packed, columns)
        self.num_words = int(words[-1])
        num_resident = int(np.searchsorted(words, resident_bytes // 4, side="right")) - 1
        self.num_resident = int(words[num_resident])
        ring = _ring_of(words, num_resident, host_bytes, rank)
        num_held = table.num_pages if ring is None else ring.first_page
        on_host = 4 * (int(words[num_held]) - self.num_resident)
        self.host_bytes = on_host + (4 * ring.num_slots * ring.load_words if ring is not None else 0)
        if on_host > available_memory():
            raise DeviceError(
                f"the packed edges that do not fit the GPU take {on_host:,} bytes of this host's memory, and "
                f"{available_memory():,} are free",
                rank=rank,
            )
        where = places.num_bytes + (lids.num_bytes if lids is not None else 0)
        check_fits({"packed edges": 4 * self.num_resident, "where rows are in them": where})
        self._resident = cupy.empty(max(1, self.num_resident), dtype=cupy.uint32)
        self._host = HostBlock(on_host)
        headers = PageHeaders(packed, places)
        reading = PageReading(
            packed,
            places,
            headers,
            columns,
            words,
            resident=self._resident,
            num_resident=num_resident,
            host=self._host.raw.view(np.uint32),
            num_held=num_held,
        )
        reading.run()
        self._pin(rank)

        order = order_of_chains(edges.rows, num_resident)
        kept = {"first_words": words.astype(np.uint64), "order": order}
        kept |= {name: getattr(places, name) for name in _PLACES}
        self._arcs_of_spans = arcs_of_spans(edges.rows)
        if self._arcs_of_spans.size:
            kept["span_numbers"] = span_numbers(edges.rows, order)
        kept |= {"fronts": reading.fronts, "first_fronts": reading.first_fronts[:-1].astype(np.uint32)}
        if columns:
            kept["column_places"] = column_places(packed, columns).ravel()
        if lids is not None:
            kept |= {"lids_of_rows": lids.words, "other_lids": lids.others.ravel()}
        self._arrays = {name: cupy.asarray(values) for name, values in kept.items()}
        self._feed: PageFeed | None = None
        if ring is not None:

            def bring(page: int, room: NDArray[np.uint32]) -> None:
                packed.bring_page(page, room, columns)
                headers.check(page, room)

            chains = edges.rows.chains
            in_order = [page for chain in order.tolist() for page in chains[chain] if page >= num_held]
            self._read_from_disk(cut_loads(in_order, np.diff(words), ring.load_words), ring.num_slots, bring)
        self._damaged = cupy.full(1, NO_PAGE, dtype=cupy.uint32)
        self._scratch_words = functools.partial(scratch_words, packed, places, columns, num_resident)
        self._heads: Any = None
        self._head_rows = np.zeros(MOST_HEADS, dtype=np.uint32)

    def _pin(self, rank: int) -> None:
        """Pin the pages of the host, as long as this is there, and a kernel that reads them."""
        import cupy

        if not self._host.pin():
            raise DeviceError(
                f"the system does not pin the {self._host.num_bytes:,} bytes of packed edges that do not fit the GPU. "
                "host_memory lets some stay on disk",
                rank=rank,
            )
        wait = waiter_for_device(int(cupy.cuda.runtime.getDevice()))
        weakref.finalize(self, _unpin, self._host, wait).atexit = False

    def _read_from_disk(self, loads: Loads, num_slots: int, bring: Callable[[int, Any], None]) -> None:
        import cupy

        num_threads = min(num_readers(self._edges.rows.packed), num_slots)
        num_slots -= num_slots % num_threads  # a slot is one thread's
        size = num_slots * loads.slot_words
        pinned = cupy.cuda.alloc_pinned_memory(4 * (size + num_slots))
        room = np.frombuffer(pinned, np.uint32, size + num_slots)
        room[size:] = 0
        ring, arrived = room[:size].reshape(num_slots, loads.slot_words), room[size:]

        def fill(load: int, slot: int, number: int) -> None:
            for page in loads.pages[load]:
                bring(page, ring[slot][int(loads.places[page]) :])
            arrived[slot] = number

        own = {"ring": pinned.ptr, "arrived": pinned.ptr + 4 * size, "kept": pinned}
        self._feed = self._fed(loads, num_slots, own, fill, num_threads)

    def _fed(
        self,
        loads: Loads,
        num_slots: int,
        own: dict[str, Any],
        fill: Callable[[int, int, int], None],
        num_threads: int,
    ) -> PageFeed:
        """Note what kernels take, and return what brings loads."""
        import cupy

        num_loads = len(loads.pages)
        pinned = cupy.cuda.alloc_pinned_memory(4 * (num_loads + 1))
        told = np.frombuffer(pinned, np.uint32, num_loads + 1)
        told[:] = 0
        self._of_feed = own | state_of_feed(cupy, loads)
        self._of_feed |= {"released": pinned.ptr, "failed": pinned.ptr + 4 * num_loads, "told": pinned}
        self._of_feed |= {"slot_words": loads.slot_words, "num_loads": num_loads, "num_slots": num_slots}
        return PageFeed(loads, num_slots, told[:-1], told[-1:], fill, num_threads)

    @property
    def is_fed(self) -> bool:
        """Whether some pages stay on disk and come through a ring."""
        return self._feed is not None

    def feeding(self) -> contextlib.AbstractContextManager[None]:
        """Bring pages from disk while kernels run, where some are there."""
        if self._feed is None:
            return contextlib.nullcontext()
        return self._feed.running(int(self._of_feed["num_sweeps"].get()[0]))

    @property
    def has_rows_on_host(self) -> bool:
        """Whether the device has some pages only."""
        return self.num_resident < self.num_words

    @property
    def has_heads(self) -> bool:
        return self._heads is not None

    def make_heads(self, degrees: Any, gids: Any, gpu: Gpu) -> None:
        """Find the heads of all rows, unless they are there; reads all pages once.

        Args:
            degrees: [rows or more], uint32, on the device.
            gids: [local ids], uint32: the gid of each; on the device.
            gpu: The GPU; the current one.

        Raises:
            GraphError: If a page is damaged.
            DeviceError: If the GPU has no memory for them; it names the bytes.
        """
        import cupy

        if self._heads is not None:
            return
        check_fits({"heads of rows": bytes_of_heads(self._edges.rows)})
        self._head_rows = head_rows(self._edges.rows)
        heads = cupy.empty(max(1, int(self._head_rows.sum(dtype=np.int64))), dtype=cupy.uint32)
        given, own = self.reader(gpu.num_sms)
        given = given, degrees, gids, cupy.zeros(1, dtype=cupy.uint32), heads
        with self.feeding():
            kernel = _heads_kernel(gpu, self._edges.local_of is not None, self.is_fed)
            kernel.launch(gpu.num_sms, _HEADS_THREADS, given)
            damaged = int(self._damaged.get()[0])
        self._require_no(damaged)
        if self.is_fed:
            sweeps = self._of_feed["num_sweeps"]
            sweeps.set(sweeps.get() + np.uint32(1))
        del own
        self._heads = heads

    def scratch_bytes(self, num_blocks: int, slots_bytes: int) -> int:
        """Return what a run takes to read pages with so many blocks, and combined messages of so many bytes."""
        return 4 * sum(self._scratch_words(slots_bytes)) * num_blocks

    def _key_tables(self, num_blocks: int, key: tuple[int, int]) -> KeyTables:
        arcs = self._arcs_of_spans
        return key_tables(int(arcs.max(initial=0)), arcs.size, num_blocks, sum(key))

    def reader(
        self,
        num_blocks: int,
        *,
        slots_bytes: int = 0,
        message: Sequence[np.dtype[Any]] = (),
        sorts: bool = False,
        key: tuple[int, int] | None = None,
    ) -> tuple[Any, Any]:
        """Return what kernels of so many blocks take, and what keeps a run's own part of it: its scratch and counts.

        Args:
            num_blocks: The blocks.
            slots_bytes: Of combined messages.
            message: The fields of messages that are listed; the run's own part has their lists, by the name "lists".
            sorts: Whether these lists are sorted; then it has "list_keys" and "list_order", too.
            key: Bytes of a key and of its sum, where messages are grouped by key.
        """
        import cupy

        scratch = self._scratch_words(slots_bytes)
        needed = {"unpacking": self.scratch_bytes(num_blocks, slots_bytes)}
        if message:
            needed["lists of messages"] = list_bytes(
                self._edges.rows.most_arcs, num_blocks, message, sorts=sorts
            )
        tables = KeyTables(0, 0) if key is None else self._key_tables(num_blocks, key)
        if key is not None:
            needed["tables of keys"] = tables.num_bytes(sum(key))
        check_fits(needed)
        chains, words = len(self._edges.rows.chains), -(-self._edges.rows.offsets.size // 32)
        own = {
            "scratch": cupy.empty(sum(scratch) * num_blocks, dtype=cupy.uint32),
            "num_read": cupy.zeros(2, dtype=cupy.uint64),
            "stamps": cupy.zeros(max(1, chains), dtype=cupy.uint32),
            "wanted_arcs": cupy.zeros(max(1, chains), dtype=cupy.uint32),
            "wanted": cupy.empty(words, dtype=cupy.uint32),
        }
        if key is not None:
            spanning = self._arcs_of_spans.size
            own |= {
                "span_stamps": cupy.zeros(max(1, spanning), dtype=cupy.uint32),
                "span_keys": cupy.empty(max(1, tables.count * tables.places * key[0]), dtype=cupy.uint8),
                "span_sums": cupy.empty(max(1, tables.count * tables.places * key[1]), dtype=cupy.uint8),
            }
        places = self._edges.rows.most_arcs
        count = max(1, num_blocks * places)
        lists = [cupy.empty((count * (1 + sorts), *dtype.shape), dtype.base) for dtype in message]
        sorting = {}
        if sorts:
            sorting["list_keys"] = cupy.empty(count, dtype=cupy.uint64)
            sorting["list_order"] = cupy.empty(count, dtype=cupy.uint32)
        filled = np.zeros((), dtype=PACKED_ROWS)
        filled["list_places"] = places
        arrays = self._arrays | own | {"resident": self._resident, "damaged": self._damaged}
        if self._heads is not None:
            arrays["heads"] = self._heads
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        for name, value in self._of_feed.items():
            if name in filled.dtype.names:
                filled[name] = value if isinstance(value, int) else value.data.ptr
        filled["words"] = (
            self._host.raw.ctypes.data - 4 * self.num_resident
        ) % 2**64  # wraps below an empty array
        filled["num_resident"], filled["scratch_words"] = self.num_resident, sum(scratch)
        filled["page_words"], filled["group_words"], _ = scratch
        filled["num_span_tables"], filled["span_places"] = tables.count, tables.places
        filled["num_chains"] = chains
        filled["num_rows"], filled["head_rows"] = self._edges.rows.offsets.size - 1, self._head_rows
        packed, local_of = self._edges.rows.packed, self._edges.local_of
        filled["num_targets"] = packed.num_vertices if local_of is None else local_of.size
        filled["first_row"], filled["num_pages"] = packed.first_row, packed.table.num_pages
        return filled, own | {"lists": lists} | sorting

    def require_whole(self) -> None:
        """Raise the error of a page that kernels found damaged, if there is one."""
        self._require_no(int(self._damaged.get()[0]))

    def _require_no(self, page: int) -> None:
        if page != NO_PAGE:
            raise self._edges.rows.packed.damaged("pages", page)


_LOAD_WORDS, _RING_WORDS, _LEAST_SLOTS = 1 << 20, 1 << 24, 4


class _Ring(NamedTuple):
    """Where pages begin that stay on disk, and the ring that they go through."""

    first_page: int
    load_words: int
    num_slots: int


def _ring_of(words: NDArray[np.int64], num_resident: int, host_bytes: int | None, rank: int) -> _Ring | None:
    """Return how pages go from disk; None where the host may hold those that the device does not.

    Args:
        words: [pages + 1], where each page begins.
        num_resident: Pages on the device.
        host_bytes: What the host may hold; None for no limit.
        rank: Whose they are.
    """
    if host_bytes is None or int(words[-1] - words[num_resident]) <= host_bytes // 4:
        return None
    longest = int(np.diff(words[num_resident:]).max())
    ring = max(_LEAST_SLOTS * longest, min(_RING_WORDS, host_bytes // 8))
    if 4 * ring > host_bytes:
        raise DeviceError(
            f"pages from disk go through {4 * ring:,} bytes of this host's memory at least, and host_memory is "
            f"{host_bytes:,}",
            rank=rank,
        )
    held = words[num_resident] + host_bytes // 4 - ring
    first_page = int(np.searchsorted(words, held, side="right")) - 1
    load_words = max(longest, min(_LOAD_WORDS, ring // 16))
    return _Ring(first_page, load_words, ring // load_words)


_PLACES = ("first_rows", "chains", "first_gaps", "parts", "chains_of")

_HEADS_THREADS = 512


@functools.cache
@spent_on("compile")
def _heads_kernel(gpu: Gpu, is_part: bool, is_fed: bool) -> Kernel:
    from sigps.device.linking import link_kernel
    from sigps.engine.gpu.variant import FED, Packing

    macros = {"SIGPS_PACKED": str(Packing.PART.value)} if is_part else {}
    macros |= FED if is_fed else {}
    module = Module(link_kernel("heads", gpu.arch, {"SIGPS_THREADS": str(_HEADS_THREADS), **macros}))
    return module.kernel("find_heads_block_mapped")


class PackedGraph(StreamedGraph):
    """A partition whose in-edges stay packed, and whose pages kernels read.

    Attributes:
        packed: The pages.
        num_rows: Their rows.
        columns: The edge columns that are read with them.
        host_bytes: What all that runs have on the host may take; None for no limit.
        values_on_host: Bytes of values on edges that the next run has there.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        gpu: Gpu,
        resident_bytes: int,
        columns: Sequence[str] = (),
        *,
        places: PlacesInPages,
        host_bytes: int | None = None,
        host_room: int | None = None,
        rank: int = 0,
    ) -> None:
        super().__init__(subgraph, gpu)
        edges = subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        self.packed = PackedEdges(
            edges,
            places,
            resident_bytes,
            columns,
            host_bytes=host_room,
            rank=rank,
            lids=_lids_of(edges, self.numbering.lids_on_host),
        )
        self.columns, self.host_bytes = tuple(columns), host_bytes
        self.num_rows = edges.rows.offsets.size - 1
        self.walked: StoredRows = StoredRows(edges)
        self._stays, self.values_on_host = (True, True), 0

    def place_values(
        self, values: bool, reverse: bool, *, on_host: int, crossing: CrossingEdges | None = None
    ) -> None:
        """Say of the next run whether values on edges, and where those of other ends lie, stay on the device.

        Args:
            values: Whether values do.
            reverse: Whether where those of other ends lie does.
            on_host: Bytes of both that lie on the host.
            crossing: The edges that lead to other ranks, where the run reads values of other ends; else None.
        """
        if self._stays[1] != reverse:
            self.forget("reverse")
        self._stays, self.walked.crossing = (values, reverse), crossing
        self.values_on_host = on_host

    @property
    def bytes_in_spare_room(self) -> int:
        return 4 * self.packed.num_resident

    @property
    def has_values_on_host(self) -> bool:
        return not self._stays[0]

    def reverse(self) -> Any:
        """Return the position of each edge's reverse, [edges], int64."""
        return self.once("reverse", lambda: self.walked.reverse(on_host=not self._stays[1]))

    @property
    def halo_bytes(self) -> int:
        """The bytes of the slots in which vertices are passed to other GPUs, where these stay."""
        layout = self._arrays.get("halo")
        arrays = () if layout is None else (layout.bounds, layout.lids, layout.copy_offsets, layout.copies)
        return sum(array.nbytes for array in arrays)

    @property
    def reverse_bytes(self) -> int:
        """The bytes of it that the device has now."""
        return self._arrays["reverse"].nbytes if "reverse" in self._arrays and self._stays[1] else 0

    def row_offsets(self) -> Any:
        """Return where rows begin among the edges, [num_owned + 1], uint64."""
        import cupy

        edges = self.numbering.subgraph.incoming
        return self.once("offsets of rows", lambda: cupy.asarray(edges.offsets.astype(np.uint64)))

    def edges_before(self) -> Any:
        """Return `CrossingEdges.before`, on the device."""
        import cupy

        crossing = self.walked.crossing
        assert crossing is not None
        return self.once("edges before", lambda: cupy.asarray(crossing.before))

    def make_heads(self) -> None:
        """Find the heads of rows, unless they are there (`PackedEdges.make_heads`)."""
        if not self.packed.has_heads:
            self.packed.make_heads(self.in_degrees, self._gids(), self._gpu)

    def _gids(self) -> Any:
        """Return the gid of each local id, [num_lids], uint32."""
        import cupy

        subgraph, gids = self.numbering.subgraph, np.zeros(self.num_lids, dtype=np.uint32)
        assert subgraph.gids is not None
        gids[self.numbering.lids_on_host] = subgraph.gids
        return cupy.asarray(gids)

    def walker(self, num_blocks: int, columns: Sequence[np.dtype[Any]]) -> dict[str, Any]:
        """Return what blocks take whose compute() walks edges, by the names of the kernels' arguments, and "gids".

        Args:
            num_blocks: The blocks; each has room for the edges of a chain.
            columns: The types of the edge columns that compute() reads; there are arrays of all as "out_columns".
        """
        import cupy

        edges = self.numbering.subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        most_arcs, is_part = edges.rows.most_arcs, edges.local_of is not None
        lids = self.num_lids if is_part else 0
        check_fits(
            {"edges that are walked": walk_bytes(self.num_owned, lids, most_arcs, num_blocks, columns)}
        )
        count = max(1, num_blocks * most_arcs)
        found = {
            "out_offsets": self.row_offsets(),
            "out_gids": cupy.empty(count, dtype=cupy.uint32),
            "out_ids": cupy.empty(count, dtype=cupy.int64),
        }
        found["out_columns"] = [cupy.empty(count, dtype=dtype) for dtype in columns]
        return found | ({"gids": self.once("gids of lids", self._gids)} if is_part else {})


def _unpin(block: HostBlock, wait: Callable[[], None]) -> None:
    wait()  # a run that was given up may have left a kernel that reads them
    block.unpin()


def _lids_of(edges: StreamedEdges, lids: NDArray[np.uint32]) -> LidsOfRows | None:
    """Return the local ids of the rows of all ranks; None where they are the numbers of rows.

    Args:
        edges: The edges.
        lids: The local id of each vertex, by its number on the host.
    """
    if edges.local_of is None:
        return None
    has_lid = edges.local_of > 0
    if edges.rows.offsets.size > 1:
        has_lid[edges.rows.packed.first_row] = True  # whose number is 0
    rows = np.flatnonzero(has_lid)
    return lids_of_rows(rows, lids[edges.local_of[rows]], has_lid.size)
