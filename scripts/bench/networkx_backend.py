"""Seconds of NetworkX functions on one graph, by NetworkX and by its backends, each call with a fresh conversion.

    .venv/bin/python scripts/bench/networkx_backend.py --edges 1000000 --backends networkx,sigps

The graph is a Kronecker graph without loops (`rmat`), undirected, as a NetworkX graph. A call of a backend converts the
graph first; it is made again on what is converted: "cached". What is compiled for the first time is compiled before.
"""

import argparse
import math
import time

import networkx as nx

import sigps


def graph_of(edges: int, seed: int = 1) -> nx.Graph:
    """Return a simple graph of about so many edges, whose nodes stand in order."""
    made = sigps.generate("rmat", scale=round(math.log2(edges / 8)), edge_factor=8, seed=seed)
    graph = nx.Graph()
    graph.add_nodes_from(range(made.num_vertices))
    matrix = made.to_scipy().tocoo()
    kept = matrix.row < matrix.col
    graph.add_edges_from(zip(matrix.row[kept].tolist(), matrix.col[kept].tolist(), strict=True))
    return graph


CALLS = {
    "pagerank": lambda graph, **how: nx.pagerank(graph, **how),
    "connected_components": lambda graph, **how: list(nx.connected_components(graph, **how)),
    "core_number": lambda graph, **how: nx.core_number(graph, **how),
    "shortest_path_length": lambda graph, **how: nx.shortest_path_length(graph, hub(graph), **how),
    "betweenness_centrality k=10": lambda graph, **how: nx.betweenness_centrality(graph, k=10, seed=1, **how),
    "betweenness_centrality k=100": lambda graph, **how: nx.betweenness_centrality(
        graph, k=100, seed=1, **how
    ),
}


def hub(graph: nx.Graph) -> int:
    """Return a node of the largest component."""
    return max(graph._adj, key=lambda node: len(graph._adj[node]))


def seconds(call, graph: nx.Graph, backend: str) -> float:
    """Return how long one call takes."""
    begin = time.perf_counter()
    call(graph, backend=backend)
    return time.perf_counter() - begin


def main() -> None:
    """Print a row a function and backend."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--backends", default="networkx,sigps")
    parser.add_argument("--functions", default=",".join(CALLS))
    options = parser.parse_args()
    nx.config.warnings_to_ignore = {"cache"}
    small, graph = graph_of(1000), graph_of(options.edges)
    print(f"{graph.number_of_nodes():,} nodes, {graph.number_of_edges():,} edges", flush=True)
    for name in options.functions.split(","):
        for backend in options.backends.split(","):
            try:
                if backend != "networkx":
                    CALLS[name](small, backend=backend)
                graph.__networkx_cache__.clear()
                with_conversion = seconds(CALLS[name], graph, backend)
                cached = seconds(CALLS[name], graph, backend) if backend != "networkx" else with_conversion
                print(f"{name:29} {backend:12} {with_conversion:9.3f} s {cached:9.3f} s cached", flush=True)
            except (NotImplementedError, ImportError, TypeError, ValueError) as error:
                print(f"{name:29} {backend:12} {type(error).__name__}: {str(error)[:80]}", flush=True)


if __name__ == "__main__":
    main()
