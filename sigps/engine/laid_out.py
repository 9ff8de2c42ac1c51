"""Partitions of a graph, laid out once and kept with it: a second run finds its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sigps.account import spent_on
from sigps.engine.contract import Needs
from sigps.engine.partition.degree_order import build_by_degree, with_rows
from sigps.engine.partition.neighbor_rows import build_neighbor_rows
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.graph import Graph
from sigps.graph.partitioning.partition import Assignment, PartitionFunction, partition

__all__ = ["partition_of"]

_KEPT = 4
"""Partitions kept with a graph: a new function for every run would fill the memory."""


def partition_of(
    graph: Graph,
    method: str | PartitionFunction,
    capacities: tuple[float, ...],
    needs: Needs,
    num_threads: int,
) -> tuple[Assignment, Subgraph]:
    """Return who owns which vertex, and this rank's partition. Collective.

    Args:
        graph: The graph; one partition for each rank of its group.
        method: How to partition.
        capacities: [ranks]: how much of the graph each takes.
        needs: What the engine reads.
        num_threads: Threads of this rank that lay it out.
    """
    known: dict[Any, tuple[Assignment, Subgraph]] = graph.derived("partitions", dict)
    is_by_degree = needs.degree_order  # then out-edges are added to the same partition where they are needed
    key = (
        method,
        capacities,
        needs.out_edges and not is_by_degree,
        needs.neighbor_rows,
        is_by_degree,
        is_by_degree and needs.ascending,
        needs.streamed,
    )
    if key not in known:
        if len(known) >= _KEPT:
            del known[next(iter(known))]
        known[key] = _laid_out(graph, method, capacities, needs, num_threads)
    assignment, subgraph = known[key]
    if needs.out_edges and subgraph.outgoing is None:
        with spent_on("build"):
            subgraph = with_rows(subgraph, graph, num_threads)
        known[key] = assignment, subgraph
    return assignment, subgraph


@spent_on("build")
def _laid_out(
    graph: Graph,
    method: str | PartitionFunction,
    capacities: tuple[float, ...],
    needs: Needs,
    num_threads: int,
) -> tuple[Assignment, Subgraph]:
    if needs.streamed:
        from sigps.engine.partition.streamed import build_streamed, divide_pages

        assignment, bounds = divide_pages(graph, method, capacities)
        subgraph = build_streamed(graph, assignment, bounds, num_threads)
    else:
        assignment = partition(graph, graph.group.size, method, capacities=capacities)
        outgoing = needs.out_edges or needs.neighbor_rows
        subgraph = (
            build_by_degree(graph, num_threads, ascending=needs.ascending)
            if needs.degree_order
            else build_subgraph(
                graph, assignment, with_outgoing=outgoing, num_threads=num_threads, gpu=needs.gpu
            )
        )
    if needs.neighbor_rows:
        rows = build_neighbor_rows(subgraph, assignment, graph.group)
        subgraph = replace(subgraph, neighbor_rows=rows)
    return assignment, subgraph
