"""Graphs: in memory, from files and generators, to files, and divided among ranks."""

from sigps.graph.arrays import InEdges
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.graph import Graph, build_graph
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport

__all__ = ["EdgeChunk", "Graph", "Ids", "InEdges", "LoadReport", "build_graph"]
