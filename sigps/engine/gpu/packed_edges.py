"""In-edges that stay packed: the first pages on the GPU, the others in pinned memory of its host.

Kernels read them page by page (`kernels/cuda/packed_rows.cuh`): what is not on the device crosses packed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import available_cores
from sigps.device.cuda import Gpu, check_fits
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.layout import Rows
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import DeviceError
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.table import PageTable
from sigps.host_memory import available_memory
from sigps.kernels.cuda.lease import EDGES, HUB_DEGREE, PACKED_ROWS

__all__ = [
    "NO_PAGE",
    "PackedEdges",
    "PackedGraph",
    "PlacesInPages",
    "bytes_beside_pages",
    "order_of_chains",
    "places_in_pages",
    "scratch_words",
]

NO_PAGE = 0xFFFFFFFF
"""What `damaged` is where no page is."""

_CHUNK = 1024
_INBOX_WORDS = 6  # at most: 16 bytes, whether there is one, and what aligns them


@dataclass(frozen=True, eq=False)
class PlacesInPages:
    """Where rows are in their pages.

    Attributes:
        first_rows: [pages + 1], the first row of each page, and the end of all rows.
        chains: [chains + 1], the first page of each chain.
        num_parts: [pages], rows with edges in it.
        first_gaps: [rows], where a row's gaps begin in its page; 0 of one that spans pages.
        parts: [rows], the place of its first target, likewise.
    """

    first_rows: NDArray[np.uint32]
    chains: NDArray[np.uint32]
    num_parts: NDArray[np.uint32]
    first_gaps: NDArray[np.uint32]
    parts: NDArray[np.uint32]

    @property
    def num_bytes(self) -> int:
        """What kernels read of it."""
        return sum(array.nbytes for array in (self.first_rows, self.chains, self.first_gaps, self.parts))


def places_in_pages(paged: PagedRows) -> PlacesInPages:
    """Return where rows are in their pages. O(rows)."""
    table, offsets, num_rows = paged.packed.table, paged.offsets, paged.offsets.size - 1
    before = np.zeros(num_rows + 1, dtype=np.int64)  # rows with edges
    np.cumsum(offsets[1:] > offsets[:-1], out=before[1:])
    firsts, ends = table.first_rows.astype(np.int64), table.end_rows.astype(np.int64)
    last_pages = np.array([chain[-1] for chain in paged.chains], dtype=np.int64)
    sizes = np.diff(paged.first_rows)
    begins = np.repeat(table.arcs[last_pages].astype(np.int64), sizes)
    parts = before[:-1] - np.repeat(before[paged.first_rows[:-1]], sizes)
    first_gaps = np.maximum(0, offsets[:-1].astype(np.int64) - begins) - parts
    first_gaps[paged.first_rows[:-1]] = 0  # also of those that span pages
    return PlacesInPages(
        np.append(firsts, num_rows).astype(np.uint32),
        np.array([*(chain[0] for chain in paged.chains), table.num_pages], dtype=np.uint32),
        (before[ends] - before[firsts]).astype(np.uint32),
        first_gaps.astype(np.uint32),
        parts.astype(np.uint32),
    )


def scratch_words(table: PageTable, places: PlacesInPages, num_resident: int = 0) -> tuple[int, int, int]:
    """Return the words of a block's scratch: for the longest page, its groups, and inboxes of rows of over 32 edges.

    Args:
        table: The pages.
        places: Where rows are in them.
        num_resident: The first so many are not copied.
    """
    parts = places.num_parts.astype(np.int64)
    gaps = np.diff(table.arcs).astype(np.int64) - parts
    chunks = int((-(-parts // _CHUNK) + -(-gaps // _CHUNK)).max(initial=0))
    longest = int(np.diff(table.words).astype(np.int64)[num_resident:].max(initial=0))
    return longest, 64 * chunks, 32 + _INBOX_WORDS * 32 * (1 + int(gaps.max(initial=0)) // 1024)


def bytes_beside_pages(
    edges: StreamedEdges, places: PlacesInPages, num_vertices: int, num_blocks: int
) -> int:
    """Return about the bytes that a graph takes on the device beside pages: by vertex, by page, and scratch."""
    words = sum(scratch_words(edges.rows.packed.table, places))
    return (
        24 * num_vertices + places.num_bytes + edges.rows.packed.table.words.nbytes + 4 * words * num_blocks
    )


def order_of_chains(paged: PagedRows, num_resident: int) -> NDArray[np.uint32]:
    """Return the order in which chains are taken: those on the device, of the first so many pages, between the others.

    The link works all the time so. Each kind keeps its order: a chain of many pages is among the first.
    """
    is_resident = np.array([chain[-1] < num_resident for chain in paged.chains], dtype=np.bool_)
    when = np.empty(is_resident.size)
    for kind in (is_resident, ~is_resident):
        count = int(np.count_nonzero(kind))
        when[kind] = (np.arange(count) + 0.5) / max(1, count)
    return np.argsort(when, kind="stable").astype(np.uint32)


class PackedEdges:
    """The pages of a graph's in-edges, the first ones on the device.

    Args:
        edges: The edges; local ids are the numbers of rows.
        places: Where rows are in pages.
        resident_bytes: What pages on the device may take.

    Attributes:
        num_resident: Words on the device.
        num_words: Words of all pages.

    Raises:
        GraphError: If a page is damaged, or cannot be read.
        DeviceError: If the host lacks memory for them.
    """

    def __init__(self, edges: StreamedEdges, places: PlacesInPages, resident_bytes: int) -> None:
        import cupy

        self._edges, packed = edges, edges.rows.packed
        table = packed.table
        words = table.words.astype(np.int64)
        self.num_words = int(words[-1])
        num_resident = int(np.searchsorted(words, resident_bytes // 4, side="right")) - 1
        self.num_resident = int(words[num_resident])
        on_host = 4 * (self.num_words - self.num_resident)
        if on_host > available_memory():
            raise DeviceError(
                f"the packed edges that do not fit the GPU take {on_host:,} bytes of this host's memory, and "
                f"{available_memory():,} are free",
                rank=0,
            )
        check_fits({"packed edges": 4 * self.num_resident, "where rows are in them": places.num_bytes})
        self._resident = cupy.empty(max(1, self.num_resident), dtype=cupy.uint32)
        self._pinned = cupy.cuda.alloc_pinned_memory(max(4, on_host))
        self._host = np.frombuffer(self._pinned, np.uint32, max(4, on_host) // 4)
        num_arcs = np.diff(table.arcs).astype(np.int64)

        def read(page: int) -> None:
            own = packed.words_of_page(page)
            if own.size < 8 or (int(own[1]), int(own[2])) != (
                int(places.num_parts[page]),
                int(num_arcs[page]),
            ):
                raise packed.damaged("pages", page)
            at = int(words[page])
            if page < num_resident:
                self._resident[at : at + own.size].set(own)
            else:
                self._host[at - self.num_resident :][: own.size] = own

        for page in range(num_resident):
            read(page)
        with ThreadPoolExecutor(available_cores()) as pool:
            list(pool.map(read, range(num_resident, table.num_pages)))
        order = order_of_chains(edges.rows, num_resident)
        kept = {"first_words": table.words, "order": order, **{n: getattr(places, n) for n in _PLACES}}
        self._arrays = {name: cupy.asarray(values) for name, values in kept.items()}
        self._damaged = cupy.full(1, NO_PAGE, dtype=cupy.uint32)
        self._scratch_words = scratch_words(table, places, num_resident)

    def scratch_bytes(self, num_blocks: int) -> int:
        """Return what a run takes to read pages with so many blocks."""
        return 4 * sum(self._scratch_words) * num_blocks

    def reader(self, num_blocks: int) -> tuple[Any, Any]:
        """Return what kernels of so many blocks take, and what keeps a run's own part of it: its scratch and counts."""
        import cupy

        check_fits({"unpacking": self.scratch_bytes(num_blocks)})
        own = {
            "scratch": cupy.empty(self.scratch_bytes(num_blocks) // 4, dtype=cupy.uint32),
            "num_read": cupy.zeros(1, dtype=cupy.uint64),
        }
        filled = np.zeros((), dtype=PACKED_ROWS)
        arrays = self._arrays | own | {"resident": self._resident, "damaged": self._damaged}
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        filled["words"] = self._pinned.ptr - 4 * self.num_resident
        filled["num_resident"], filled["scratch_words"] = self.num_resident, sum(self._scratch_words)
        filled["page_words"], filled["group_words"], _ = self._scratch_words
        filled["num_chains"] = len(self._edges.rows.chains)
        filled["num_rows"] = self._edges.rows.offsets.size - 1
        filled["num_targets"] = self._edges.rows.packed.num_vertices
        return filled, own

    def require_whole(self) -> None:
        """Raise the error of a page that kernels found damaged, if there is one."""
        page = int(self._damaged.get()[0])
        if page != NO_PAGE:
            raise self._edges.rows.packed.damaged("pages", page)


_PLACES = ("first_rows", "chains", "first_gaps", "parts")


class _InRows:
    """What a lease takes of in-edges beside their pages."""

    def __init__(self, degrees: Any, num_edges: int) -> None:
        import cupy

        none = cupy.zeros(1, dtype=cupy.uint64)
        self.rows = Rows(degrees, none, none, 0, 0, 0, num_edges)

    def structure(self) -> Any:
        filled = np.zeros((), dtype=EDGES)
        filled["offsets"], filled["slices"] = self.rows.offsets.data.ptr, self.rows.slices.data.ptr
        filled["degrees"], filled["num_rows"] = self.rows.degrees.data.ptr, self.rows.degrees.size
        return filled


class PackedGraph(GpuGraph):
    """A partition whose in-edges stay packed, by target alone.

    Local ids are the numbers of rows, those of vertices without a row behind them.

    Attributes:
        packed: The pages.
    """

    def __init__(self, subgraph: Subgraph, gpu: Gpu, resident_bytes: int) -> None:
        import cupy

        edges = subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        assert subgraph.gids is not None
        self.numbering = numbering = Numbering(cupy, subgraph)
        self.num_owned, self.num_lids = numbering.num_owned, numbering.num_lids
        self.is_symmetric = subgraph.is_symmetric
        self.in_degrees = cupy.asarray(numbering.in_degrees)
        rows: Any = _InRows(self.in_degrees, edges.num_edges)
        self.incoming = self.outgoing = rows
        self.tiles = self.spilling = None
        self.is_sorted = False
        degrees = subgraph.out_degrees.astype(np.uint32)
        self.out_degrees = self.in_degrees if self.is_symmetric else cupy.asarray(degrees)
        self.num_hubs = int(np.count_nonzero(degrees > HUB_DEGREE))
        self.could_send = int(np.count_nonzero(degrees))
        self.most_out_edges = int(degrees.max(initial=0))
        self.has_narrow_ids = subgraph.ids_fit_32_bits
        self.packed = PackedEdges(edges, places_in_pages(edges.rows), resident_bytes)
        self.kept = {}
        self._gpu, self._arrays = gpu, {}
