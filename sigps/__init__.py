"""Graph processing on many GPUs: write `compute()` for one vertex, run it anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigps.errors import (
    CompileError,
    ComputeError,
    ConfigError,
    DeviceError,
    ExchangeError,
    GraphError,
    KernelError,
    OutputError,
    PartitionError,
    ServerError,
    SigpsError,
    StateLogError,
)
from sigps.model.fields import from_column, neighbor_links, num_neighbors
from sigps.model.limits import above, at_least, between, finite, one_of, requires
from sigps.model.table import Table
from sigps.model.vector import Vector
from sigps.model.vertex import Aggregator, EdgeState, Param, Shared, State, Vertex, VertexId, inf
from sigps.model.wrapping import wrapping
from sigps.version import __version__ as __version__

if TYPE_CHECKING:
    from sigps import apps as apps
    from sigps.gas.front_end import GAS
    from sigps.graph.generators.generate import generate
    from sigps.graph.graph import Graph
    from sigps.graph.load import load
    from sigps.group.limits import Faults
    from sigps.job.many import run_many
    from sigps.job.many_results import Results
    from sigps.job.result import EdgeFields, Result
    from sigps.job.run import run
    from sigps.job.stream import stream
    from sigps.job.table_file import read_result
    from sigps.job.updates import Updates, read_updates
    from sigps.serve.client import Client, connect
    from sigps.serve.pool import Pool, pool
    from sigps.system.checkpoint.state_log import Checkpoint

__all__ = [
    "GAS",
    "Aggregator",
    "Checkpoint",
    "Client",
    "CompileError",
    "ComputeError",
    "ConfigError",
    "DeviceError",
    "EdgeFields",
    "EdgeState",
    "ExchangeError",
    "Faults",
    "Graph",
    "GraphError",
    "KernelError",
    "OutputError",
    "Param",
    "PartitionError",
    "Pool",
    "Result",
    "Results",
    "ServerError",
    "Shared",
    "SigpsError",
    "State",
    "StateLogError",
    "Table",
    "Updates",
    "Vector",
    "Vertex",
    "VertexId",
    "above",
    "at_least",
    "between",
    "connect",
    "finite",
    "from_column",
    "generate",
    "inf",
    "load",
    "neighbor_links",
    "num_neighbors",
    "one_of",
    "pool",
    "read_result",
    "read_updates",
    "requires",
    "run",
    "run_many",
    "stream",
    "wrapping",
]

_LATE = {
    "GAS": "sigps.gas.front_end",
    "Checkpoint": "sigps.system.checkpoint.state_log",
    "Client": "sigps.serve.client",
    "EdgeFields": "sigps.job.result",
    "Faults": "sigps.group.limits",
    "Graph": "sigps.graph.graph",
    "Pool": "sigps.serve.pool",
    "Result": "sigps.job.result",
    "connect": "sigps.serve.client",
    "generate": "sigps.graph.generators.generate",
    "load": "sigps.graph.load",
    "Results": "sigps.job.many_results",
    "pool": "sigps.serve.pool",
    "read_result": "sigps.job.table_file",
    "run": "sigps.job.run",
    "run_many": "sigps.job.many",
    "stream": "sigps.job.stream",
    "Updates": "sigps.job.updates",
    "read_updates": "sigps.job.updates",
}


def __getattr__(name: str) -> Any:
    """Import what needs more than the program model when it is first asked for."""
    import importlib

    if name == "apps":
        return importlib.import_module("sigps.apps")
    if name not in _LATE:
        raise AttributeError(f"module 'sigps' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not, so that shells and notebooks complete them."""
    return sorted([*__all__, "__version__", "apps"])
