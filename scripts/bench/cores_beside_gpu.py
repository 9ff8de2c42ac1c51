"""Measure how many arcs a second a CPU core pulls from packed pages: what cores could take off a GPU.

    python scripts/bench/cores_beside_gpu.py --scales 20 21 22 23 25 27 28 --threads 1 2

Rows of recursive-matrix graphs of any scale are drawn by themselves, in the order of degrees, so that a core reads the
records of as many vertices as in the whole graph, of which a few slices are in memory. In such a graph a vertex's
number of one bits says how many arcs it has, and of which vertices they come. Slices lie apart by equal numbers of
arcs. `--real SCALES` has whole graphs of these scales beside them, which judge what was drawn.

*packed* unpacks a page and adds up records, *raw* adds up records along arcs that lie unpacked in memory, *unpacked*
only unpacks. *notified*: pages are read twice, once to mark the targets of those that sent (`--senders` of all rows),
once to pull marked rows; its arcs are those that were pulled. Each is a loop of its own that does nothing else, so a
superstep is slower. Times are processor time, the least of `--repeats`. `sigps plan` says what follows for a GPU
(`prediction.gain_of_cores`). Writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check
from numpy.typing import NDArray

import sigps
from sigps.graph.packing.pages import PAGE_ARCS, most_page_words, pack_rows, unpack_rows
from sigps.native.kernel import compiled

ONE = 0.24
"""How often a bit of an arc's end is one; a graph of scale s has 16 * 2^s edges, each an arc both ways."""
ONE_BESIDE = 0.25, 0.05 / 0.24
"""The same where the other end has a zero there, and a one."""


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", nargs="+", type=int, default=[20, 22, 24, 26, 27, 28])
    options.add_argument(
        "--real", nargs="*", type=int, default=[], help="scales of which whole graphs are made"
    )
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--slices", type=int, default=16)
    options.add_argument("--arcs", type=int, default=1 << 22, help="of a slice")
    options.add_argument("--senders", type=float, default=0.1)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--output", type=Path, default=RESULTS / "cores-beside-gpu.json")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"repeats": given.repeats, "senders": given.senders})
    for scale in given.real:
        measure(whole_pages(scale), f"kron-{scale}", given, table)
    for scale in given.scales:
        measure(drawn_pages(scale, given), f"rows {scale}", given, table)


@dataclass(frozen=True)
class Page:
    """Some rows.

    Attributes:
        first: The first row's number.
        degrees: Of the rows.
        ends: Of their arcs: rows by number, ascending.
        words: The same, packed.
    """

    first: int
    degrees: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    words: NDArray[np.uint32]


@dataclass(frozen=True)
class Pages:
    """Pages of a graph, and how many vertices have an arc."""

    pages: list[Page]
    num_rows: int

    @property
    def num_arcs(self) -> int:
        """Of all pages."""
        return sum(page.ends.size for page in self.pages)


def whole_pages(scale: int) -> Pages:
    """Return all pages of a graph that is generated."""
    graph = sigps.generate("rmat", scale=scale, seed=1)
    degrees = np.diff(graph.offsets).astype(np.int64)
    order = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)]
    number = np.zeros(graph.num_vertices, dtype=np.uint32)
    number[order] = np.arange(order.size, dtype=np.uint32)

    def rows() -> Iterator[tuple[int, NDArray[Any], NDArray[np.uint32]]]:
        for first in range(0, order.size, 1 << 14):
            own = order[first : first + (1 << 14)]
            ends = [
                np.sort(number[graph.targets[int(graph.offsets[v]) : int(graph.offsets[v + 1])]]) for v in own
            ]
            yield first, degrees[own], np.concatenate(ends)

    return Pages([page for given in rows() for page in packed(*given)], order.size)


def drawn_pages(scale: int, given: argparse.Namespace) -> Pages:
    """Return pages of rows that are drawn as such a graph has them."""
    ones = np.arange(scale + 1)
    sizes = np.array([math.comb(scale, k) for k in ones], dtype=np.float64)
    degrees = 32 * 2.0**scale * ONE**ones * (1 - ONE) ** (scale - ones)
    kept = np.maximum(1, np.floor(sizes * -np.expm1(-degrees))).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(kept)))
    draw, pages = np.random.default_rng(scale), []
    arcs = np.cumsum(sizes * degrees) / np.sum(sizes * degrees)
    for at in (np.arange(given.slices) + 0.5) / given.slices:
        k = int(np.searchsorted(arcs, at))
        count = int(min(kept[k], max(1, given.arcs // max(1.0, degrees[k]))))
        first = int(starts[k] + draw.integers(0, kept[k] - count + 1))
        drawn = np.maximum(1, draw.poisson(degrees[k], count))
        rows = np.repeat(np.arange(count), drawn)
        of = draw.binomial(scale - k, ONE_BESIDE[0], rows.size) + draw.binomial(k, ONE_BESIDE[1], rows.size)
        ends = starts[of] + (draw.random(rows.size) * kept[of]).astype(np.int64)
        keys = np.unique(rows << 32 | ends)
        own = np.bincount(keys >> 32, minlength=count)
        pages += packed(first, own, (keys & 0xFFFFFFFF).astype(np.uint32))
    return Pages(pages, int(starts[-1]))


def packed(first: int, degrees: NDArray[Any], ends: NDArray[np.uint32]) -> Iterator[Page]:
    """Yield pages of rows; a row of more arcs than a page holds goes on in others."""
    words = np.empty(most_page_words(PAGE_ARCS, PAGE_ARCS), dtype=np.uint32)
    firsts, gaps = np.empty((2, PAGE_ARCS), dtype=np.uint32)
    stops = np.cumsum(degrees)
    row, arc = 0, 0
    while row < degrees.size:
        begin = int(stops[row] - degrees[row])
        whole = max(row + 1, int(np.searchsorted(stops, max(arc, begin) + PAGE_ARCS, side="right")))
        stop = min(int(stops[whole - 1]), arc + PAGE_ARCS)
        own = np.diff(np.clip(np.concatenate(([begin], stops[row:whole])), arc, stop)).astype(np.uint32)
        taken = ends[arc:stop].copy()
        count = pack_rows(own, taken, np.uint64(first + row), firsts, gaps, words)
        yield Page(first + row, own, taken, words[: int(count)].copy())
        arc = stop
        row = whole if stop == stops[whole - 1] else whole - 1


@compiled
def add_up(degrees, ends, records, wanted, sums):
    """Add up the records along the arcs of each wanted row, four sums at a time; return the arcs."""
    e, arcs = np.uint64(0), np.uint64(0)
    for r in range(len(degrees)):
        degree = np.uint64(degrees[r])
        if wanted[r] != 0:
            a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
            fours = degree & ~np.uint64(3)
            for i in range(e, e + fours, 4):
                a += records[ends[i]]
                b += records[ends[i + 1]]
                c += records[ends[i + 2]]
                d += records[ends[i + 3]]
            for i in range(e + fours, e + degree):
                a += records[ends[i]]
            sums[r] = (a + b) + (c + d)
            arcs += degree
        e += degree
    return arcs


@compiled
def mark(degrees, ends, sends, marks):
    """Mark the targets of rows that sent."""
    e = np.uint64(0)
    for r in range(len(degrees)):
        degree = np.uint64(degrees[r])
        if sends[r] != 0:
            for i in range(e, e + degree):
                marks[ends[i]] = np.uint8(1)
        e += degree


class Room:
    """What a thread unpacks a page into."""

    def __init__(self) -> None:
        self.degrees, self.firsts, self.ends = np.empty((3, PAGE_ARCS + 32), dtype=np.uint32)
        self.gaps, self.sums = np.empty(1024, dtype=np.uint32), np.empty(PAGE_ARCS, dtype=np.float32)
        self.all = np.ones(PAGE_ARCS, dtype=np.uint8)

    def unpack(self, page: Page, num_rows: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the degrees and the ends of a page."""
        count, ends = page.degrees.size, self.ends[: page.ends.size]
        sizes = np.uint64(num_rows), np.uint64(page.first), np.uint64(count)
        check(
            unpack_rows(page.words, *sizes, self.degrees, self.firsts, self.gaps, ends), "a page is damaged"
        )
        return self.degrees[:count], ends


def measure(pages: Pages, name: str, given: argparse.Namespace, table: Table) -> None:
    """Add a row for each way and number of threads."""
    draw = np.random.default_rng(0)
    records = draw.random(pages.num_rows, dtype=np.float32)
    marks = np.zeros(pages.num_rows, dtype=np.uint8)
    sends = [(draw.random(page.degrees.size) < given.senders).astype(np.uint8) for page in pages.pages]
    is_marked = [  # by all rows, of which most are not here
        (draw.random(page.degrees.size) >= (1 - given.senders) ** page.degrees.astype(float)).astype(np.uint8)
        for page in pages.pages
    ]

    def unpacked(room: Room, number: int) -> int:
        return room.unpack(pages.pages[number], pages.num_rows)[1].size

    def from_pages(room: Room, number: int) -> int:
        degrees, ends = room.unpack(pages.pages[number], pages.num_rows)
        return int(add_up(degrees, ends, records, room.all, room.sums))

    def raw(room: Room, number: int) -> int:
        page = pages.pages[number]
        return int(add_up(page.degrees, page.ends, records, room.all, room.sums))

    def notified(room: Room, number: int) -> int:
        degrees, ends = room.unpack(pages.pages[number], pages.num_rows)
        mark(degrees, ends, sends[number], marks)
        degrees, ends = room.unpack(pages.pages[number], pages.num_rows)
        return int(add_up(degrees, ends, records, is_marked[number], room.sums))

    judge(pages, records)
    bytes_an_arc = sum(4 * page.words.size for page in pages.pages) / pages.num_arcs
    about = {"records_megabytes": round(records.nbytes / 1e6), "bytes_an_arc": round(bytes_an_arc, 2)}
    ways = {"unpacked": unpacked, "packed": from_pages, "raw": raw, "notified": notified}
    for threads in given.threads:
        for work, (seconds, arcs) in timed(ways, len(pages.pages), threads, given.repeats).items():
            rate = arcs / seconds / 1e9
            row = {"work": work, "graph": name, "threads": threads, "arcs": arcs} | about
            row |= {"ns_an_arc": round(1 / rate, 3), "billion_arcs_a_second": round(rate, 4)}
            text = (
                f"{threads} threads, {arcs / 1e6:>6.1f} M arcs of {about['bytes_an_arc']} bytes, records of "
            )
            text += (
                f"{about['records_megabytes']:>4} MB: {1 / rate:>5.2f} ns an arc, {rate:.3f} G arcs/s a core"
            )
            table.add(row, text)


def judge(pages: Pages, records: NDArray[np.float32]) -> None:
    """Check that pages unpack to what they were, and that sums along them are right."""
    room = Room()
    for page in pages.pages:
        degrees, ends = room.unpack(page, pages.num_rows)
        check(np.array_equal(degrees, page.degrees) and np.array_equal(ends, page.ends), "a page differs")
        begins = (np.cumsum(degrees) - degrees)[degrees > 0].astype(np.int64)
        add_up(degrees, ends, records, room.all, room.sums)
        expected = np.add.reduceat(records[ends].astype(np.float64), begins)
        check(np.allclose(room.sums[: degrees.size][degrees > 0], expected, rtol=1e-3), "a sum differs")


def timed(
    ways: dict[str, Callable[[Room, int], int]], num_pages: int, threads: int, repeats: int
) -> dict[str, tuple[float, int]]:
    """Return the least processor seconds of each way over all pages, and its arcs; ways take turns."""
    found: dict[str, tuple[float, int]] = {}
    rooms = [Room() for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for repeat in range(repeats + 1):  # the first compiles
            for name, work in ways.items():
                began = time.process_time()
                arcs = sum(pool.map(lambda own, work=work: over(work, *own), shares(rooms, num_pages)))
                seconds = time.process_time() - began
                if repeat and (name not in found or seconds < found[name][0]):
                    found[name] = seconds, arcs
    return found


def shares(rooms: Sequence[Room], num_pages: int) -> Iterator[tuple[Room, range]]:
    """Yield every so many pages with a thread's room."""
    for number, room in enumerate(rooms):
        yield room, range(number, num_pages, len(rooms))


def over(work: Callable[[Room, int], int], room: Room, numbers: range) -> int:
    """Do some work for several pages, and return the arcs."""
    return sum(work(room, number) for number in numbers)


if __name__ == "__main__":
    main()
