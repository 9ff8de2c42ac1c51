"""Graphs in PyTorch Geometric: `to_pyg`, the graph store and the sampler, by PyG's own loaders; results as tensors."""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

import sigps
from sigps import Graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PyTorch's own modules
    torch = pytest.importorskip("torch", reason="no PyTorch: pip install 'sigps[pyg]'")
    torch_geometric = pytest.importorskip("torch_geometric", reason="no PyTorch Geometric")
    from torch_geometric.data import Data
    from torch_geometric.loader import LinkLoader, NodeLoader
    from torch_geometric.sampler import NodeSamplerInput
    from torch_geometric.testing import MyFeatureStore

    from sigps.pyg import GraphStore, NeighborSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)

EDGES = [
    (10, 20, 1.5),
    (10, 30, 2.5),
    (20, 30, 3.5),
    (40, 30, 4.5),
    (30, 10, 5.5),
    (50, 30, 6.5),
    (30, 30, 7.5),
]


@pytest.fixture
def graph() -> Graph:
    sources, targets, weights = zip(*EDGES, strict=True)
    ages = {"age": np.array([1.0, 2.0, 3.0, 4.0, 5.0])}
    return Graph.from_edges(sources, targets, weights, vertices=[10, 20, 30, 40, 50], vertex_columns=ages)


def sample(graph: Graph, nodes: list[int], num_neighbors: list[int], seed: int = 0):
    torch.manual_seed(seed)
    wanted = NodeSamplerInput(input_id=None, node=torch.tensor(nodes))
    return NeighborSampler(graph, num_neighbors).sample_from_nodes(wanted)


def test_to_pyg_has_the_edges_and_columns(graph: Graph) -> None:
    data = graph.to_pyg()
    assert isinstance(data, Data)
    data.validate()
    ids = np.asarray(graph.ids)
    ends = ids[data.edge_index.numpy()].T.tolist()
    found = {(s, t, w) for (s, t), w in zip(ends, data.edge_weight.tolist(), strict=True)}
    assert found == set(EDGES)
    assert data.num_nodes == 5
    assert data.age.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert data.edge_index[1].tolist() == sorted(data.edge_index[1].tolist())


def test_layouts_of_the_store_are_one_graph(graph: Graph) -> None:
    store = GraphStore(graph)
    pairs = set()
    for attr in store.get_all_edge_attrs():
        first, second = store.get_edge_index(attr)
        if attr.layout.value == "csc":
            second = torch.repeat_interleave(torch.arange(5), second.diff())
        if attr.layout.value == "csr":
            first, second = torch.repeat_interleave(torch.arange(5), first.diff()), second
        pairs.add(frozenset(zip(first.tolist(), second.tolist(), strict=True)))
    ids = np.asarray(graph.ids).tolist()
    assert pairs == {frozenset((ids.index(s), ids.index(t)) for s, t, _ in EDGES)}
    with pytest.raises(sigps.ConfigError, match="does not change"):
        store.put_edge_index((torch.tensor([0]), torch.tensor([1])), edge_type=None, layout="coo")


def test_all_neighbours_are_the_in_neighbourhood(graph: Graph) -> None:
    found = sample(graph, [1], [-1, -1])  # vertex 20: from 10, and 10 from 30
    assert found.node.tolist() == [1, 0, 2]
    assert (found.row.tolist(), found.col.tolist()) == ([1, 2], [0, 1])
    assert (found.num_sampled_nodes, found.num_sampled_edges) == ([1, 1, 1], [1, 1])
    data = graph.to_pyg()
    assert torch.equal(data.edge_index[:, found.edge], found.node[torch.stack([found.row, found.col])])


@pytest.mark.parametrize("k", [1, 3, 4])
def test_samples_have_each_edge_once_and_all_alike(graph: Graph, k: int) -> None:
    seen = collections.Counter()
    for seed in range(400):
        found = sample(graph, [2], [k], seed)
        edges = found.edge.tolist()
        assert len(set(edges)) == len(edges) == k
        seen.update(edges)
    expected = 400 * k / 5  # vertex 30 has five in-edges
    deviation = np.sqrt(400 * k / 5 * (1 - k / 5))
    assert len(seen) == 5
    assert max(abs(count - expected) for count in seen.values()) < 5 * deviation


def test_the_same_seed_draws_the_same() -> None:
    graph = sigps.generate("rmat", scale=8, seed=1)
    one, again, other = (sample(graph, [0, 1, 2], [5, 5], seed) for seed in (7, 7, 8))
    assert torch.equal(one.edge, again.edge)
    assert not torch.equal(one.edge, other.edge)


def test_loaders_give_edges_of_the_graph_and_features_of_its_vertices() -> None:
    graph = sigps.generate("rmat", scale=9, seed=1)
    graph = graph.with_vertex_columns({"x": np.arange(graph.num_vertices, dtype=np.float32)})
    data = graph.to_pyg()
    sampler = NeighborSampler(graph, [4, 3])
    features = MyFeatureStore()
    features.put_tensor(data.x, group_name=None, attr_name="x", index=None)
    for loaded in ((data, sampler), ((features, GraphStore(graph)), sampler)):
        loader = NodeLoader(*loaded, input_nodes=torch.arange(200), batch_size=64)
        batches = list(loader)
        assert sum(batch.batch_size for batch in batches) == 200
        for batch in batches:
            assert torch.equal(batch.x.long(), batch.n_id)
            assert torch.equal(data.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])
            assert batch.edge_index[1].bincount().max() <= 4
    links = LinkLoader(
        data, sampler, edge_label_index=data.edge_index[:, :50], neg_sampling_ratio=1.0, batch_size=25
    )
    for batch in links:
        assert batch.edge_label.tolist() == [1.0] * 25 + [0.0] * 25
        assert torch.equal(data.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])


@pytest.mark.parametrize(
    ("num_neighbors", "nodes", "message"),
    [([], [0], "each hop"), ([-2], [0], "each hop"), ([2], [0, 0], "twice")],
)
def test_what_makes_no_sense_is_refused(
    graph: Graph, num_neighbors: list[int], nodes: list[int], message: str
) -> None:
    with pytest.raises(sigps.ConfigError, match=message):
        sample(graph, nodes, num_neighbors)


def test_results_are_tensors_without_a_copy(graph: Graph) -> None:
    result = sigps.run(sigps.apps.PageRank(), graph, device="python")
    tensor = torch.from_dlpack(result["rank"])
    tensor[0] = 7.0
    assert result["rank"][0] == 7.0
