"""Whether a job fits: the bytes of a pool, what its graphs keep of them, and what jobs take by themselves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from sigps.costs.memory import bytes_of_states, bytes_of_tables, memory
from sigps.costs.sizes import even_partition, size_of, turned_size
from sigps.device.cpu import available_cores
from sigps.engine.contract import Share
from sigps.engine.fixed_points import may_reorder
from sigps.engine.table import engine_of
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.job.preparing import check_program, precision_of
from sigps.model.vertex import Vertex
from sigps.serve.job import Estimate
from sigps.serve.shared_graph import bytes_to_share

__all__ = ["Budget", "estimate"]

_SHARED = ("graph", "as loaded")

_PROCESS_BYTES = 160_000_000
"""Private memory of a rank that has laid out next to nothing, as `RLIMIT_DATA` counts it: 148 to 157 MB, 39 in use."""


def estimate(
    program: Vertex,
    graph: Graph,
    device: str,
    options: Mapping[str, Any],
    seconds: float | None,
    num_ranks: int = 1,
) -> Estimate:
    """Return what a job will take, on each of its devices. Nothing runs; the program is analysed, not compiled.

    On several each has a process, whose partition is its own; on CPU cores they share the graph as it is loaded.

    Raises:
        CompileError: If compute() cannot be compiled.
        ConfigError: If it is no program.
    """
    precision = precision_of(program, options.get("precision", "auto"))
    derived = check_program(program, device, precision)
    loaded = size_of(graph)
    size = turned_size(loaded, program)
    reorders = may_reorder(
        options.get("asynchronous", "auto"),
        max_supersteps=options.get("max_supersteps"),
        saves=options.get("checkpoint") is not None,
        schedule=options.get("schedule", "vertex"),
    )
    purposes = memory(
        size,
        derived,
        num_ranks,
        bytes_of_states(program, precision),
        loaded=loaded,
        table_bytes=bytes_of_tables(program),
        num_threads=available_cores() if reorders and device == "cpu" else 0,
    )
    if derived is not None:
        part = even_partition(size.num_vertices, size.num_edges, num_ranks)
        share = Share(
            part.vertices,
            part.edges,
            len(graph.column_types()),
            size.directed,
            num_ranks,
            size.num_edges,
        )
        if of_device := engine_of(device).num_bytes(derived, share):
            purposes.pop("as loaded", None)
            purposes |= of_device
    if num_ranks > 1:
        copied = 0
        if device != "cuda":
            copied = purposes["as loaded"] = bytes_to_share(graph)
            purposes["its process"] = _PROCESS_BYTES
        return Estimate(purposes, sum(purposes.values()) - copied, copied, seconds)
    shared = sum(purposes.get(name, 0) for name in _SHARED)
    return Estimate(purposes, sum(purposes.values()) - shared, shared, seconds)


class Budget:
    """The bytes of one device that a pool may use. A graph's are taken once, by the first job on it, and kept.

    Args:
        num_bytes: All of them.
    """

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.own_bytes = 0
        self._of_graphs: dict[Hashable, int] = {}

    @property
    def free_bytes(self) -> int:
        return self.num_bytes - self.own_bytes - self.graph_bytes

    @property
    def graph_bytes(self) -> int:
        return sum(self._of_graphs.values())

    def missing_bytes(self, graph: Hashable, needed: Estimate) -> int:
        """Return how many bytes more are needed for a job now; 0 where it fits. Pure."""
        more = max(0, needed.graph_bytes - self._of_graphs.get(graph, 0))
        return max(0, needed.own_bytes + more - self.free_bytes)

    def take(self, graph: Hashable, needed: Estimate) -> None:
        """Take a job's bytes."""
        self._of_graphs[graph] = max(self._of_graphs.get(graph, 0), needed.graph_bytes)
        self.own_bytes += needed.own_bytes

    def give_back(self, needed: Estimate) -> None:
        """Give back what an ended job took by itself."""
        self.own_bytes -= needed.own_bytes

    def forget(self, graph: Hashable) -> None:
        """Give back what a graph keeps."""
        self._of_graphs.pop(graph, None)

    def check(self, graph: Hashable, needed: Estimate) -> None:
        """Check that a job fits once all others have ended.

        Raises:
            ConfigError: If it never does; it says the bytes.
        """
        alone = Budget(self.num_bytes)
        alone._of_graphs = dict(self._of_graphs)
        if missing := alone.missing_bytes(graph, needed):
            by_purpose = ", ".join(f"{name} {n:,}" for name, n in needed.bytes_by_purpose.items())
            raise ConfigError(
                f"the job needs {needed.own_bytes:,} bytes by itself and {needed.graph_bytes:,} for its graph "
                f"({by_purpose}), {missing:,} more than the pool has ({self.num_bytes:,}, "
                f"{sum(self._of_graphs.values()):,} of them for graphs). Drop a graph (pool.drop), or give memory="
            )
