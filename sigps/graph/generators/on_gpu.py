"""Recursive matrices drawn on a GPU: the edges of `edge_streams.draw_rmat`, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.device.cuda import Gpu
from sigps.graph import random_bits as rb
from sigps.graph.building.on_gpu import EdgesOnGpu, launch
from sigps.graph.generators.edge_streams import EdgeStream
from sigps.graph.ids import Ids

__all__ = ["draw_on_gpu"]


def draw_on_gpu(stream: EdgeStream, gpu: Gpu) -> EdgesOnGpu:
    """Draw all edges of a recursive matrix of fewer than 2**32 vertices; O(edges * scale)."""
    import cupy

    matrix, count = stream.matrix, stream.num_edges
    assert matrix is not None
    keys = cupy.empty(count, np.uint64)
    round_keys = cupy.asarray(matrix.round_keys)
    drawn = np.uint64(0), np.uint64(count), np.uint32(matrix.scale), *matrix.thresholds
    by = np.uint64(rb.seed_key(matrix.seed)), round_keys, np.uint32(round_keys.size)
    launch(gpu, "draw_rmat_thread_mapped", count, *drawn, *by, keys)
    columns: dict[str, Any] = {}
    if stream.weights is not None:
        columns["weight"] = cupy.empty(count, np.float32)
        key = np.uint64(rb.seed_key(stream.seed))
        launch(gpu, "weigh_thread_mapped", count, keys, np.uint64(count), key, columns["weight"])
    return EdgesOnGpu(keys, columns, Ids.identity(stream.num_vertices))
