"""What the interpreter passes to `compute()`: the `View` of a vertex, and its edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Edge", "EdgeValues", "View"]


class EdgeValues(Protocol):
    """The edge states of a partition, by name and index of an edge: an `Edge` reads and writes its own there."""

    def __contains__(self, name: object) -> bool: ...
    def read(self, name: str, index: int) -> Any: ...
    def write(self, name: str, index: int, value: Any) -> None: ...
    def reverse(self, index: int) -> Edge: ...


class Edge:
    """One out-edge as `compute()` sees it.

    It has a `target`, a `weight` (1.0 on an unweighted graph), the graph's edge columns, and the edge states.
    """

    __slots__ = ("_columns", "_values", "index", "target")

    index: int
    target: int
    _columns: dict[str, Any] | None
    _values: EdgeValues | None

    def __init__(
        self, index: int, target: int, columns: dict[str, Any] | None, values: EdgeValues | None = None
    ) -> None:
        for name, value in (("index", index), ("target", target), ("_columns", columns), ("_values", values)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if self._values is not None and name in self._values:
            return self._values.read(name, self.index)
        if self._columns is None:
            raise AttributeError(
                f"an edge that common_neighbors() gives has a target and what is kept on it, no {name!r}: "
                "declare an EdgeState, and copy the column there in superstep 0"
            )
        if name in self._columns:
            return self._columns[name]
        if name == "weight":
            return 1.0
        raise AttributeError(
            f"the edges have no column {name!r}; they have: {', '.join(self._columns) or 'none'}"
        )

    @property
    def reverse(self) -> Edge:
        """The same undirected edge from its target, as it was when the superstep began: `edge.reverse.bound`."""
        if self._values is None:
            raise AttributeError("edge.reverse has what is kept on edges: declare an EdgeState")
        return self._values.reverse(self.index)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._values is None or name not in self._values:
            raise AttributeError(
                f"edge.{name} cannot be assigned: its columns belong to the graph, and what a vertex keeps "
                "on edges is declared as an EdgeState"
            )
        self._values.write(name, self.index, value)


class View(Protocol):
    """One vertex of a run while its `compute()` runs: what it reads, and how it acts. The interpreter implements it."""

    id: int
    superstep: int
    num_vertices: int
    num_edges: int
    out_degree: int
    in_degree: int

    def out_edges(self) -> Sequence[Edge]: ...
    def common_neighbors(self, edge: Edge) -> Iterator[tuple[Edge, Edge]]: ...
    def send(self, edge: Edge, message: Any) -> None: ...
    def send_to(self, vertex_id: int, message: Any) -> None: ...
    def next_draw(self) -> int: ...
    def halt(self) -> None: ...
    def retire(self) -> None: ...
    def aggregate(self, name: str) -> Any: ...
    def contribute(self, name: str, value: Any) -> None: ...
    def share(self, name: str, value: Any) -> None: ...
    def stop(self) -> None: ...
    def wake_all(self) -> None: ...
