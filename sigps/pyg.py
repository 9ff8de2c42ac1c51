"""Graphs of sigps in PyTorch Geometric: a graph store, and a sampler of neighbours (extra `pyg`).

`Graph.to_pyg` copies a graph into tensors; what is here reads the graph's own arrays, 4 bytes an edge.

    from torch_geometric.loader import NodeLoader
    from sigps.pyg import NeighborSampler

    loader = NodeLoader(graph.to_pyg(), NeighborSampler(graph, [15, 10]), input_nodes=train, batch_size=1024)

Nodes are numbered as the vertices of the graph are, in ascending order of ids: `graph.ids.to_oids(batch.n_id)`. One
process only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import GraphStore as _GraphStore
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from sigps import ConfigError, Graph

__all__ = ["GraphStore", "NeighborSampler"]


class GraphStore(_GraphStore):
    """The edges of a graph, for PyG's loaders: read only, of one type.

    A layout is made when it is first asked for, and kept: 8 bytes an edge for each of its ends, since PyG wants
    int64.

    Args:
        graph: The graph; one process only.
        edge_type: What PyG calls its edges.
    """

    def __init__(self, graph: Graph, edge_type: tuple[str, str, str] | None = None) -> None:
        super().__init__()
        self._graph, self._edge_type = graph, edge_type
        self._made: dict[EdgeLayout, tuple[torch.Tensor, torch.Tensor]] = {}

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Return the layouts that there are: by target, by source, and pairs in the order of targets."""
        size = (self._graph.num_vertices, self._graph.num_vertices)
        return [EdgeAttr(self._edge_type, layout, layout != EdgeLayout.CSR, size) for layout in _LAYOUTS]

    def _get_edge_index(self, edge_attr: EdgeAttr) -> tuple[torch.Tensor, torch.Tensor] | None:
        if edge_attr.edge_type != self._edge_type:
            return None
        if edge_attr.layout not in self._made:
            self._made[edge_attr.layout] = self._laid_out(edge_attr.layout)
        return self._made[edge_attr.layout]

    def _laid_out(self, layout: EdgeLayout) -> tuple[torch.Tensor, torch.Tensor]:
        if layout == EdgeLayout.CSR:
            return _int64(self._graph.offsets), _int64(self._graph.targets)
        edges = self._graph.in_edges()
        if layout == EdgeLayout.CSC:
            return _int64(edges.sources), _int64(edges.offsets)
        offsets = edges.offsets.astype(np.int64)
        degrees = offsets[1:] - offsets[:-1]
        return _int64(edges.sources), torch.from_numpy(np.repeat(np.arange(degrees.size), degrees))

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise ConfigError("a graph of sigps does not change: make another one, and a GraphStore of it")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise ConfigError("a graph of sigps does not change: make another one, and a GraphStore of it")


class NeighborSampler(BaseSampler):
    """Samples in-neighbours of nodes, hop by hop, for PyG's `NodeLoader` and `LinkLoader`.

    In each hop a node that was found in the last one gets `num_neighbors` of its in-edges, all equally likely and none
    twice, or all where it has no more; -1 takes all. Nodes come in the order in which they are found, the seeds first.
    Draws follow `torch.manual_seed`, and the seeds of a loader's workers. NumPy on one core: O(edges sampled *
    num_neighbors).

    Args:
        graph: The graph; one process only. Messages go along its edges, so in-edges are sampled.
        num_neighbors: For each hop how many.

    Raises:
        ConfigError: If `num_neighbors` has none, or one below -1.
    """

    def __init__(self, graph: Graph, num_neighbors: Sequence[int]) -> None:
        super().__init__()
        if not num_neighbors or min(num_neighbors) < -1:
            raise ConfigError(
                f"num_neighbors={num_neighbors!r}, but it has a number for each hop, -1 for all"
            )
        edges = graph.in_edges()
        self._offsets, self._sources = edges.offsets, edges.sources
        self._num_vertices = graph.num_vertices
        self.num_neighbors = list(num_neighbors)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """Return the sampled neighbourhood of nodes; `edge` has positions in the edges of `Graph.to_pyg`."""
        return node_sample(index, self._sample)

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None, **kwargs: Any
    ) -> SamplerOutput:
        """Return the sampled neighbourhood of the ends of edges, and of negative ones where these are wanted."""
        return edge_sample(index, self._sample, self._num_vertices, False, None, neg_sampling)

    def _sample(self, seed: torch.Tensor, seed_time: torch.Tensor | None = None, **_: Any) -> SamplerOutput:
        if seed_time is not None:
            raise ConfigError("time was given, but NeighborSampler samples edges whatever their time")
        draw = np.random.default_rng(torch.randint(2**63 - 1, ()).item())
        nodes, hops = seed.numpy(), [seed.numel()]
        if np.unique(nodes).size < nodes.size:
            raise ConfigError("a node is twice among those that neighbours are sampled of; give each once")
        rows, columns, edges = [], [], []
        for k in self.num_neighbors:
            first = nodes.size - hops[-1]
            owners, positions = self._drawn(nodes[first:], k, draw)
            nodes, local = _numbered(nodes, self._sources[positions].astype(np.int64))
            rows.append(local)
            columns.append(owners + first)
            edges.append(positions)
            hops.append(nodes.size - first - hops[-1])
        return SamplerOutput(
            node=torch.from_numpy(nodes),
            row=torch.from_numpy(np.concatenate(rows)),
            col=torch.from_numpy(np.concatenate(columns)),
            edge=torch.from_numpy(np.concatenate(edges)),
            num_sampled_nodes=hops,
            num_sampled_edges=[hop.size for hop in edges],
        )

    def _drawn(
        self, nodes: NDArray[np.int64], k: int, draw: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each edge drawn which of `nodes` it leads to, and its position; grouped by node."""
        begins = self._offsets[nodes].astype(np.int64)
        degrees = self._offsets[nodes + 1].astype(np.int64) - begins
        taken = degrees if k < 0 else np.minimum(degrees, k)
        owners = np.repeat(np.arange(nodes.size), taken)
        within = np.arange(owners.size) - np.repeat(np.cumsum(taken) - taken, taken)
        if 0 <= k < degrees.max(initial=0):
            many = np.flatnonzero(degrees > k)
            is_many = (degrees > k)[owners]
            within[is_many] = _subsets(degrees[many], k, draw).ravel()
        return owners, begins[owners] + within


def _subsets(sizes: NDArray[np.int64], k: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Return k different numbers below each of `sizes`, [sizes, k]; each subset is as likely as any other.

    R. W. Floyd's way: the j-th draw is among the first `size - k + j + 1` numbers, and the last of these takes the
    place of a number that is there already.

    J. Bentley, B. Floyd, "A sample of brilliance", Communications of the ACM 30, 1987.
    """
    chosen = np.full((sizes.size, k), -1, dtype=np.int64)
    for j in range(k):
        last = sizes - k + j
        drawn = draw.integers(0, last, endpoint=True)
        chosen[:, j] = np.where((chosen[:, :j] == drawn[:, None]).any(axis=1), last, drawn)
    return chosen


def _numbered(
    nodes: NDArray[np.int64], found: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `nodes` with those of `found` that are new behind them, and where each of `found` stands in it."""
    both = np.concatenate([nodes, found])
    _, firsts, which = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return both[np.sort(firsts)], place[which[nodes.size :]]


def _int64(values: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.int64))


_LAYOUTS = (EdgeLayout.CSC, EdgeLayout.CSR, EdgeLayout.COO)
