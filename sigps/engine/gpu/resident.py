"""What partitions keep on a GPU between runs, and what of it goes when a run needs the room."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

from sigps.device.cuda import Gpu, free_bytes
from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.report import bytes_text

if TYPE_CHECKING:
    from sigps.engine.gpu.graph import GpuGraph

__all__ = [
    "Held",
    "bytes_of_edges",
    "forget_on_gpu",
    "graphs_on_gpu",
    "hold_on_gpu",
    "make_room",
    "runs_on_gpu",
]

log = logging.getLogger(__name__)


class Held(Protocol):
    """What results hold on a GPU, and can hold on its host as well.

    Attributes:
        gpu: The GPU.
        num_bytes: What it holds of it.
    """

    gpu: Gpu

    @property
    def num_bytes(self) -> int: ...

    def leave_gpu(self) -> None:
        """Let go of what is on the GPU, the current one, when a copy is on the host. One thread at a time."""


def graphs_on_gpu(subgraph: Subgraph, gpu: Gpu) -> dict[Any, GpuGraph]:
    """Return what is laid out of a partition, by how it is; it stays until others need the room (`make_room`)."""
    return _on_gpus.setdefault(subgraph, {}).setdefault(gpu.ordinal, {})


def runs_on_gpu(subgraph: Subgraph, gpu: Gpu) -> dict[Any, Any]:
    """Return what runs leave for others that are alike; dropped with the edges, to which it may refer."""
    return _runs_on.setdefault(subgraph, {}).setdefault(gpu.ordinal, {})


def bytes_of_edges(subgraphs: Collection[Subgraph], gpu: Gpu) -> int:
    """Return what edges of some partitions take of a GPU because there was room for them."""
    with _making_room:
        laid_out = [_on_gpus.get(subgraph, {}).get(gpu.ordinal, {}) for subgraph in subgraphs]
        return sum(graph.bytes_in_spare_room for graphs in laid_out for graph in list(graphs.values()))


def forget_on_gpu(subgraph: Subgraph, gpu: Gpu) -> None:
    """Drop a partition's edges from a GPU, where they are there."""
    _on_gpus.get(subgraph, {}).pop(gpu.ordinal, None)
    _runs_on.get(subgraph, {}).pop(gpu.ordinal, None)


def hold_on_gpu(held: Held) -> None:
    """Take note of what a result holds; it stays until it is let go of, or a run has no room without it."""
    _held[next(_numbers)] = held


def make_room(wanted: int, gpu: Gpu, besides: Collection[Subgraph] = (), *, needed: int | None = None) -> int:
    """Drop what is kept for later runs, the oldest first, until so many bytes are free; return how many are.

    What a run still has stays. Fields of earlier results come to the host, the oldest first, where less is free than a
    run cannot be without, and theirs is enough.

    Args:
        wanted: Bytes.
        gpu: The GPU; the current one.
        besides: Partitions whose edges stay.
        needed: The bytes that a run cannot be without; None: all that are wanted.
    """
    needed = wanted if needed is None else needed
    with _making_room:
        free = _drop_graphs(wanted, gpu, besides)
        return free if free >= needed else _bring_results(needed, gpu, free)


def _drop_graphs(wanted: int, gpu: Gpu, besides: Collection[Subgraph]) -> int:
    free = free_bytes(wanted)
    for subgraph, on_gpus in list(_on_gpus.items()):
        graphs = on_gpus.get(gpu.ordinal, {})
        for graph in (
            []
            if any(subgraph is own for own in besides)
            else [weakref.ref(kept) for kept in list(graphs.values())]
        ):
            if free >= wanted:
                return free
            keys = [key for key, kept in graphs.items() if kept is graph()]  # rows may stand in for tiles
            for key in keys:
                del graphs[key]
            _runs_on.get(subgraph, {}).pop(gpu.ordinal, None)
            free = free_bytes(wanted)
            if (in_use := graph()) is not None:
                graphs.update(dict.fromkeys(keys, in_use))
    return free


def _bring_results(needed: int, gpu: Gpu, free: int) -> int:
    before = free
    found = [held() for held in _held.valuerefs()]  # which other threads may add to meanwhile
    results = [result for result in found if result is not None and result.gpu.ordinal == gpu.ordinal]
    del found
    if free + sum(result.num_bytes for result in results) < needed:
        return free
    while results and free < needed:
        results.pop(0).leave_gpu()
        free = free_bytes()
    if free > before:
        log.info(
            "fields of earlier results are on the host now: %s more on the GPU", bytes_text(free - before)
        )
    return free


_making_room = threading.RLock()
_on_gpus: weakref.WeakKeyDictionary[Subgraph, dict[int, dict[Any, GpuGraph]]] = weakref.WeakKeyDictionary()
_runs_on: weakref.WeakKeyDictionary[Subgraph, dict[int, dict[Any, Any]]] = weakref.WeakKeyDictionary()
_held: weakref.WeakValueDictionary[int, Held] = weakref.WeakValueDictionary()
_numbers = itertools.count()
