"""What partitions keep on a GPU between runs, and what of it goes when a run needs the room."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from sigps.device.cuda import Gpu, free_bytes
from sigps.engine.partition.subgraph import Subgraph

if TYPE_CHECKING:
    from sigps.engine.gpu.graph import GpuGraph

__all__ = ["forget_on_gpu", "graphs_on_gpu", "make_room", "runs_on_gpu"]


def graphs_on_gpu(subgraph: Subgraph, gpu: Gpu) -> dict[Any, GpuGraph]:
    """Return what is laid out of a partition, by how it is; it stays until others need the room (`make_room`)."""
    return _on_gpus.setdefault(subgraph, {}).setdefault(gpu.ordinal, {})


def runs_on_gpu(subgraph: Subgraph, gpu: Gpu) -> dict[Any, Any]:
    """Return what runs leave for others that are alike; dropped with the edges, to which it may refer."""
    return _runs_on.setdefault(subgraph, {}).setdefault(gpu.ordinal, {})


def forget_on_gpu(subgraph: Subgraph, gpu: Gpu) -> None:
    """Drop a partition's edges from a GPU, where they are there."""
    _on_gpus.get(subgraph, {}).pop(gpu.ordinal, None)
    _runs_on.get(subgraph, {}).pop(gpu.ordinal, None)


def make_room(wanted: int, gpu: Gpu, besides: Subgraph | None = None) -> int:
    """Drop what is kept for later runs, the oldest first, until so many bytes are free; return how many are.

    What a run still has stays.

    Args:
        wanted: Bytes.
        gpu: The GPU; the current one.
        besides: The partition whose edges stay.
    """
    with _making_room:
        free = free_bytes(wanted)
        for subgraph, on_gpus in list(_on_gpus.items()):
            graphs = on_gpus.get(gpu.ordinal, {})
            for graph in [] if subgraph is besides else [weakref.ref(kept) for kept in graphs.values()]:
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


_making_room = threading.RLock()
_on_gpus: weakref.WeakKeyDictionary[Subgraph, dict[int, dict[Any, GpuGraph]]] = weakref.WeakKeyDictionary()
_runs_on: weakref.WeakKeyDictionary[Subgraph, dict[int, dict[Any, Any]]] = weakref.WeakKeyDictionary()
