"""In-edges laid out in tiles by the kernels' text, compiled for the host."""

from __future__ import annotations

import ctypes
import functools
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_kernels import entries_of, kernels_of, library_of, text_of

from sigps.engine.gpu import graph as gpu_graph

__all__ = ["LAYOUT", "LAYOUT_ENTRIES", "launch_on_host", "lay_tiles_out_on_host"]

_DEVICE = r"""
// Lanes that are not all there each stand alone (`__activemask`).
static uint32_t ballot_of(uint32_t lanes, bool value) {
  return lanes == 0xffffffff ? __ballot_sync(lanes, value) : value ? lanes : 0;
}
#define __ballot_sync ballot_of
"""

_OF_COLUMNS = {
    "place_tile_column_32_warp_mapped": "const uint64_t *|const uint64_t *|const uint32_t *|const uint32_t *|"
    "const uint32_t *|uint64_t|const uint32_t *|const uint32_t *|const uint32_t *|uint64_t|const uint32_t *|uint32_t|"
    "uint32_t|const int64_t *|const uint32_t *|uint32_t *",
    "place_row_column_32_thread_mapped": "Edges|const uint32_t *|const uint32_t *|const uint32_t *|uint64_t|"
    "const uint32_t *|const int64_t *|const uint32_t *|uint32_t *",
}
"""Kernels that a macro makes, and the types of their parameters."""


LAYOUT = (_DEVICE, text_of("edges.cuh"), text_of("tile_layout.cu"))
"""The kernels' text, for a block of 1,024 threads of `host_threads.hpp`."""

LAYOUT_ENTRIES = entries_of(
    kernels_of(LAYOUT[-1]) | {name: types.split("|") for name, types in _OF_COLUMNS.items()}
)
"""What the host calls in it."""


def launch_on_host(kernels: ctypes.CDLL, name: str, num_threads: int, *arguments: Any) -> None:
    """Launch a kernel that lays edges out."""
    if name == "make_keys_warp_mapped":
        _, lids, offsets, ends = (np.array(a) for a in arguments[:-1])
        row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets).astype(np.int64))
        arguments[-1].set(lids[row].astype(np.uint64) << np.uint64(32) | lids[ends])
    elif name.startswith("take_rows_32"):
        values, order, _, _, found = arguments
        found.set(np.array(values)[np.array(order)])
    else:
        kept = [
            np.array(a.ctypes.data, np.uint64) if isinstance(a, np.ndarray) and a.ndim else np.array(a)
            for a in arguments
        ]
        getattr(kernels, f"run_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in kept))


def lay_tiles_out_on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the GPU that `use_host_as_gpu` made lay in-edges out in tiles.

    Args:
        monkeypatch: Takes it back.
    """
    of_rows, one_by_one = gpu_graph.layout_kernel, threading.Lock()

    def kernel(name: str, gpu: Any, file: str = "layout") -> Any:
        def launch(blocks: int, threads: int, arguments: Any) -> None:
            with one_by_one:
                launch_on_host(_library(), name, blocks * threads, *arguments)

        return SimpleNamespace(launch=launch) if _is_of_tiles(name, file) else of_rows(name, gpu, file)

    monkeypatch.setattr(gpu_graph, "layout_kernel", kernel)


def _is_of_tiles(name: str, file: str) -> bool:
    return file == "tile_layout" or name == "make_keys_warp_mapped"


@functools.cache
def _library() -> ctypes.CDLL:
    threads = (Path(__file__).parent / "host_threads.hpp").read_text()
    return library_of([threads, *LAYOUT, LAYOUT_ENTRIES], {"SIGPS_THREADS": 1024})
