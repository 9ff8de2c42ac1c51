"""Packed pages that come to kernels from disk while these run, through a ring.

Kernels take them in one order, again and again (`kernels/cuda/packed_rows.cuh`): a sweep is what one pull reads. So
nobody asks for a page: threads read ahead as far as the ring goes, and leave out what kernels have left out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cuda.lease import NO_LOAD

__all__ = ["Loads", "PageFeed", "cut_loads", "state_of_feed"]

_PAUSE = 2e-5
"""Seconds between two looks of a thread that waits for a slot."""


@dataclass(frozen=True, eq=False)
class Loads:
    """How pages go into loads.

    Attributes:
        pages: [loads], the pages of each, in the order in which kernels take them.
        load_of: [pages of all], uint32: the load of each page, or NO_LOAD.
        places: [pages of all], uint32: where it begins in its load, in words.
        slot_words: Words of the largest load.
    """

    pages: list[list[int]]
    load_of: NDArray[np.uint32]
    places: NDArray[np.uint32]
    slot_words: int


def cut_loads(order: Sequence[int], sizes: NDArray[np.int64], load_words: int) -> Loads:
    """Cut pages into loads: as many as have at most so many words, or one.

    Args:
        order: The pages that are fed, as kernels take them.
        sizes: [pages of all], the words of each.
        load_words: Words of a load.

    >>> found = cut_loads([4, 5, 3], np.array([9, 9, 9, 20, 8, 8]), 16)
    >>> found.pages, found.places.tolist(), found.slot_words
    ([[4, 5], [3]], [0, 0, 0, 0, 0, 8], 20)
    """
    pages, words = list[list[int]](), list[int]()
    load_of = np.full(sizes.size, NO_LOAD, dtype=np.uint32)
    places = np.zeros(sizes.size, dtype=np.uint32)
    for page in order:
        size = int(sizes[page])
        if not pages or words[-1] + size > load_words:
            pages.append([])
            words.append(0)
        load_of[page], places[page] = len(pages) - 1, words[-1]
        pages[-1].append(page)
        words[-1] += size
    return Loads(pages, load_of, places, max(words, default=0))


class PageFeed:
    """Threads that bring loads into a ring while kernels run.

    Args:
        loads: How pages go into loads.
        num_slots: Slots of the ring.
        released: [loads], uint32, which kernels write: the last sweep, from 1, that has done with a load.
        failed: [1], uint32, which kernels read: not 0 where no more comes.
        fill: Brings a load into a slot and writes its number among those of all sweeps there, from 1, to `arrived` of
            the slot, given these three; called by several threads at a time.
        num_threads: Threads that do.
    """

    def __init__(
        self,
        loads: Loads,
        num_slots: int,
        released: NDArray[np.uint32],
        failed: NDArray[np.uint32],
        fill: Callable[[int, int, int], None],
        num_threads: int,
    ) -> None:
        self._num_loads, self._num_slots, self._fill = len(loads.pages), num_slots, fill
        self._released, self._failed = released, failed
        self._brought = np.full(num_slots, -1)  # the number of what is in each slot
        # A slot is one thread's: another might fill it while this one still reads what is left out by then.
        most = max(1, min(num_threads, num_slots))
        self._num_threads = next(n for n in range(most, 0, -1) if num_slots % n == 0)
        self._error: BaseException | None = None
        self._is_running = threading.Lock()

    @contextlib.contextmanager
    def running(self, num_sweeps: int) -> Iterator[None]:
        """Bring pages while the block runs.

        Args:
            num_sweeps: Sweeps that are over.

        Raises:
            GraphError: If a page could not be read.
        """
        stops = threading.Event()
        with self._is_running:
            threads = [
                threading.Thread(target=self._work, args=(first, num_sweeps, stops), daemon=True)
                for first in range(self._num_threads)
            ]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                stops.set()
                for thread in threads:
                    thread.join()
            self.require()

    def require(self) -> None:
        """Raise what kept a page from being read, if anything did."""
        if self._error is not None:
            error, self._error = self._error, None
            self._failed[0] = 0
            raise error

    def _work(self, first: int, num_sweeps: int, stops: threading.Event) -> None:
        """Bring every so many-th load, from a first one on."""
        num_loads, num_slots = self._num_loads, self._num_slots
        number = num_sweeps * num_loads + first
        try:
            while not stops.is_set():
                sweep, load = divmod(number, num_loads)
                before, held = divmod(number - num_slots, num_loads)
                if number >= num_slots and self._released[held] < before + 1:  # it is in the slot
                    time.sleep(_PAUSE)
                    continue
                slot = number % num_slots
                if self._released[load] < sweep + 1 and self._brought[slot] != number:
                    self._fill(load, slot, number + 1 & 0xFFFFFFFF)
                    self._brought[slot] = number
                number += self._num_threads
        except BaseException as error:
            self._error = self._error or error
            self._failed[0] = 1


def state_of_feed(cupy: Any, loads: Loads) -> dict[str, Any]:
    """Return the arrays of the device that kernels read pages of loads by."""
    counts = np.array([len(pages) for pages in loads.pages], dtype=np.uint32)
    return {
        "load_of": cupy.asarray(loads.load_of),
        "place_in_load": cupy.asarray(loads.places),
        "pages_of_load": cupy.asarray(counts),
        "num_done": cupy.zeros(counts.size, dtype=cupy.uint32),
        "num_sweeps": cupy.zeros(1, dtype=cupy.uint32),
    }
