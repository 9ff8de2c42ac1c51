"""Graph processing on many GPUs: write `compute()` for one vertex, run it anywhere."""

from __future__ import annotations

from sigps.vertex import Aggregator, Param, State, Vertex, VertexId, inf

__version__ = "0.1.0.dev0"
