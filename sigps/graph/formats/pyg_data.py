"""A graph as the `Data` of PyTorch Geometric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

__all__ = ["to_pyg"]


def to_pyg(graph: GraphArrays, in_edges: InEdges) -> Data:
    """See `Graph.to_pyg`; the edges are in the order of `in_edges`."""
    try:
        from torch_geometric.data import Data
    except ImportError as error:
        raise GraphError(
            f"to_pyg needs PyTorch Geometric, which cannot be imported ({error}). "
            "Install it with: pip install 'sigps[pyg]'"
        ) from error
    ends = np.empty((2, in_edges.sources.size), dtype=np.int64)
    ends[0] = in_edges.sources
    offsets = in_edges.offsets.astype(np.int64)
    ends[1] = np.repeat(np.arange(graph.num_vertices), offsets[1:] - offsets[:-1])
    tensors = {f"edge_{name}": _tensor(column) for name, column in in_edges.columns.items()}
    tensors |= {name: _tensor(column) for name, column in graph.vertex_columns.items()}
    return Data(edge_index=_tensor(ends), num_nodes=graph.num_vertices, **tensors)


def _tensor(values: NDArray[Any]) -> torch.Tensor:
    """Return a tensor of an array, without a copy where the array may be written to."""
    import torch

    return torch.from_numpy(values if values.flags.writeable else values.copy())
