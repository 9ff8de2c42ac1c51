"""Loops of compute() that may never end, while a GPU runs them: Ctrl-C ends them, and a warning names them.

A GPU reads the byte that Ctrl-C sets for compiled loops of CPU cores (`native/interrupt.py`): it lies in a page of the
host that the GPU can read. Programs without a `while` have none of this.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator

from sigps.device.cuda import Gpu, Module, map_host_page, word_reader
from sigps.native.interrupt import watching

__all__ = ["connect", "wait_for_stream", "watching_loops", "watching_supersteps"]

log = logging.getLogger(__name__)

_FIRST_SECONDS = 10.0
"""How long a superstep may take before it is asked whether its loops end; then twice as long, and so on."""


def connect(module: Module, gpu: Gpu) -> None:
    """Let a module's loops read the byte that Ctrl-C sets."""
    module.set_address("sigps_interrupted", _flag_on(gpu))


@functools.cache
def _flag_on(gpu: Gpu) -> int:
    from sigps.native.machine import interrupted_page

    return map_host_page(interrupted_page())


@contextlib.contextmanager
def watching_loops(name: str, gpu: Gpu, superstep_at: int) -> Iterator[None]:
    """Watch a launch of a program with such loops, inside, up to where its results have been read.

    Args:
        name: The program.
        gpu: The GPU.
        superstep_at: The address of the superstep that it runs, on the device.
    """
    with watching(), watching_supersteps(name, word_reader(gpu, superstep_at)):
        yield


def wait_for_stream() -> None:
    """Wait until CuPy's current stream has done all."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()


@contextlib.contextmanager
def watching_supersteps(
    name: str, read_superstep: Callable[[], int], seconds: float | None = None
) -> Iterator[None]:
    """Warn where one superstep takes long, inside.

    Args:
        name: The program.
        read_superstep: Returns the superstep that runs; called in another thread, once the first seconds are over.
        seconds: After how many to warn first.
    """
    is_over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(name, read_superstep, seconds or _FIRST_SECONDS, is_over), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _watch(name: str, read_superstep: Callable[[], int], seconds: float, is_over: threading.Event) -> None:
    superstep, began, limit = -1, time.monotonic(), seconds
    while not is_over.wait(seconds / 5):
        now = read_superstep()
        if now != superstep:
            superstep, began, limit = now, time.monotonic(), seconds
        elif time.monotonic() - began >= limit:
            log.warning(
                "%s: compute() has run for %.0f s in superstep %d on a GPU: does a loop of it end? Ctrl-C ends the run",
                name,
                time.monotonic() - began,
                superstep,
            )
            limit *= 2
