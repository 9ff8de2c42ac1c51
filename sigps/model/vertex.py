"""What users write: a subclass of `Vertex` with fields, a message type and `compute()`.

    from sigps import Param, State, Vertex, VertexId, inf

    class SSSP(Vertex, message=float):
        source: Param[VertexId]
        distance: State[float] = inf

        def compute(self, messages):
            best = 0.0 if self.superstep == 0 and self.id == self.source else min(messages, default=inf)
            if best < self.distance:
                self.distance = best
                for edge in self.out_edges:
                    self.send(edge, best + edge.weight)
            self.vote_to_halt()

`SSSP(source=5)` is a program: a class and the values of its parameters. Nothing here computes: the
interpreter runs `compute()` with a `View` of the run, and the compiler reads its source instead of running it.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from sigps.errors import CompileError, ConfigError, nearest
from sigps.model import draws
from sigps.model.aggregator import Aggregator
from sigps.model.declaration import Declaration, checked, declare
from sigps.model.fields import EdgeState, Field, Param, Shared, State, VertexId, extreme, inf
from sigps.model.view import Edge, View

__all__ = [
    "Aggregator",
    "Edge",
    "EdgeState",
    "Field",
    "Param",
    "Shared",
    "State",
    "Vertex",
    "VertexId",
    "extreme",
    "inf",
]


def _frame_of_class() -> types.FrameType | None:
    """Return the frame of the class statement that is running, from within its `__init_subclass__`."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "__init_subclass__":
        frame = frame.f_back
    while frame is not None and frame.f_code.co_name == "__init_subclass__":
        frame = frame.f_back
    return frame


def scope_of_class() -> dict[str, Any]:
    """Return the names that annotations of the class statement that is running may use."""
    frame = _frame_of_class()
    return {**frame.f_globals, **frame.f_locals} if frame is not None else {}


class Vertex:
    """The base of every vertex program. Subclass it and write `compute()`.

    Class arguments:
        message: The type of a message: `int`, `float`, `bool`, `VertexId`, a NumPy scalar type, or a
            `NamedTuple` of these. Leave it out in a program that sends nothing.
        combiner: A function of two messages that gives one, associative and commutative. Needed only where
            `compute()` does not show it; `min`, `max`, `sum` or your own function.
        directed: False for a program of undirected graphs: a directed graph is run with every edge in both
            directions.
        simple: True, with `directed=False`, for a program of simple graphs: loops are left out, and so are all but
            one of parallel edges, as an edge of a directed graph and its reverse then are.
        both_ways: True for a program that needs the edges into a vertex too. Every edge is an out-edge of both its
            ends and has two more columns: `edge.leads_out`, true at its source, and `edge.leads_in`, true at its
            target. A loop and an undirected edge lead both ways. Degrees and `num_edges` count what is stored.
        precision: The array type of Python's `float` in runs that do not say (`sigps.run(..., precision=...)`):
            `"double"`, or `"single"`, float32. Subclasses have it, too.
    """

    declaration: ClassVar[Declaration] = Declaration((), (), (), None, (), None)
    view: View
    random_seed: int = 0
    """The run's seed: `sigps.run(..., seed=...)`."""

    def __init_subclass__(
        cls,
        message: Any = None,
        combiner: Callable[[Any, Any], Any] | None = None,
        directed: bool | None = None,
        both_ways: bool | None = None,
        simple: bool | None = None,
        asynchronous: float | None = None,
        precision: Literal["single", "double"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if "declaration" in vars(cls):  # another form of a class that is declared
            return
        caller = _frame_of_class()
        scope = scope_of_class()
        place = (caller.f_code.co_filename, caller.f_lineno) if caller is not None else ("", 0)
        precision = cls.declaration.precision if precision is None else _checked_precision(cls, precision)
        declared = declare(
            cls, Vertex, cls.declaration, message, combiner, directed, both_ways, simple, scope, place
        )
        cls.declaration = replace(declared, precision=precision)
        if asynchronous is not None:
            cls.declaration = replace(cls.declaration, factor=_checked_factor(cls, asynchronous))

    def __init__(self, *unnamed: Any, **params: Any) -> None:
        """Bind the run's parameters, each by its name.

        Raises:
            ConfigError: If a parameter has no name or an unknown one, is missing, of the wrong type or outside its
                limits, or a condition between parameters does not hold.
        """
        declared = self.declaration
        fields = {field.name: field for field in declared.params}
        if unnamed:
            written = f"{next(iter(fields))}={unnamed[0]!r:.80}" if fields else ""
            raise ConfigError(
                f"{type(self).__name__} takes parameters by their names: {type(self).__name__}({written})"
            )
        for name in params:
            if name not in fields:
                names = ", ".join(fields) or "none"
                raise ConfigError(
                    f"{type(self).__name__} has no parameter {name!r}{nearest(name, fields)} It has: {names}"
                )
        given = {name: params.get(name, field.default) for name, field in fields.items()}
        for name, value in given.items():
            if value is Field.REQUIRED:
                raise ConfigError(f"{type(self).__name__} needs {name}=: a parameter without a default")
        lengths = declared.lengths
        of_vectors_first = sorted(given, key=lambda name: name not in lengths) if lengths else given
        for name in of_vectors_first:
            if lengths and name not in lengths:
                object.__setattr__(self, "declaration", self.declaration.with_lengths(vars(self)))
                fields, lengths = {field.name: field for field in self.declaration.params}, frozenset()
            object.__setattr__(self, name, checked(type(self).__name__, fields[name], given[name]))
        if lengths:
            object.__setattr__(self, "declaration", self.declaration.with_lengths(vars(self)))
        for name, condition in self.declaration.conditions:
            holds = getattr(self, name)
            if not holds():
                read = [f"{n}={v!r:.80}" for n, v in self.params.items() if n in holds.__code__.co_names]
                raise ConfigError(f"{type(self).__name__}: {condition}, not {', '.join(read)}")

    def __copy__(self) -> Self:
        """Return a program of the same class and values. Every run makes two: `copy` alone takes ten times as long."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __repr__(self) -> str:
        """Return the class and the values of its parameters, as in `KHop(source=5, hops=2)`."""
        given = (f"{name}={value!r}" for name, value in self.params.items())
        return f"{type(self).__name__}({', '.join(given)})"

    def compute(self, messages: Any) -> None:
        """Run one superstep of one vertex. Subclasses write this."""
        raise NotImplementedError(f"{type(self).__name__} has no compute()")

    def master(self) -> None:
        """Run once after every superstep. Subclasses may write this, in any Python.

        It reads parameters, aggregators (what this superstep gave), shared values, `superstep`, `num_vertices` and
        `num_edges`; it sets shared values, and may call `stop()` and `wake_all()`. Where that is all, it is compiled,
        and a GPU runs it without the host; what is more than that runs as Python, on rank 0.
        """

    def next_phase(self) -> None:
        """Run when a phase is over: no vertex is active and no message is in flight. Subclasses may write this.

        It may do what `master()` may, and replaces it: the supersteps of a phase follow each other without it, which is
        faster. The run ends unless it wakes vertices. `superstep` is the phase's last in which a vertex ran.
        """

    def stop(self) -> None:
        """End the run; for `master()` and `next_phase()`."""
        self.view.stop()

    def wake_all(self) -> None:
        """Make every vertex active that has not retired; for `master()` and `next_phase()`."""
        self.view.wake_all()

    @property
    def params(self) -> dict[str, Any]:
        """The run's parameters by name."""
        return {field.name: getattr(self, field.name) for field in self.declaration.params}

    @property
    def id(self) -> int:
        """The user's id of this vertex."""
        return self.view.id

    @property
    def superstep(self) -> int:
        """The current superstep, counted from 0."""
        return self.view.superstep

    @property
    def num_vertices(self) -> int:
        """The number of vertices of the whole graph."""
        return self.view.num_vertices

    @property
    def num_edges(self) -> int:
        """The number of directed edges of the whole graph (an undirected edge counts in both directions)."""
        return self.view.num_edges

    @property
    def out_degree(self) -> int:
        """The number of edges out of this vertex."""
        return self.view.out_degree

    @property
    def in_degree(self) -> int:
        """The number of edges into this vertex."""
        return self.view.in_degree

    @property
    def out_edges(self) -> Sequence[Edge]:
        """The edges out of this vertex, in ascending order of their targets; `self.out_edges[k]` is one of them."""
        return self.view.out_edges()

    def common_neighbors(self, edge: Edge) -> Iterator[tuple[Edge, Edge]]:
        """The triangles on an out-edge: pairs of an edge from this vertex and one from `edge.target` to one vertex.

        Common neighbours come in ascending order, each once; the ends of the edge are not among them. Edge states of
        the two edges read as they were when the superstep began, and cannot be assigned.
        """
        return self.view.common_neighbors(edge)

    def has_edge(self, target: int) -> bool:
        """Tell whether there is an edge from this vertex to a target; O(log out_degree) in compiled code."""
        return any(edge.target == target for edge in self.view.out_edges())

    def random_edge(self) -> Edge:
        """Draw one of the edges out of this vertex, uniformly: `edge = self.random_edge()`."""
        return self.view.out_edges()[self.random_int(self.out_degree)]

    def send(self, edge: Edge, message: Any) -> None:
        """Send a message along an out-edge; it is read in the next superstep."""
        self.view.send(edge, message)

    def send_to_neighbors(self, message: Any) -> None:
        """Send one message along every out-edge."""
        for edge in self.view.out_edges():
            self.view.send(edge, message)

    def send_to(self, vertex_id: int, message: Any) -> None:
        """Send a message to any vertex by its id. One that is not in the graph ends the run with an error."""
        self.view.send_to(vertex_id, message)

    def random(self) -> float:
        """Draw a number in [0, 1), uniformly.

        It depends on the run's seed, the vertex's id, the superstep, and how many draws this call of compute() made
        before: it is the same on every device and for every number of ranks.
        """
        return draws.random(*self._draw())

    def random_int(self, below: int) -> int:
        """Draw a whole number from 0 to below - 1, uniformly."""
        return draws.random_int(*self._draw(), below)

    def choose(self, weights: Sequence[float]) -> int:
        """Draw a position in `weights`, a tuple of numbers that are not negative, in proportion to the weight there."""
        return draws.choose(*self._draw(), weights)

    def _draw(self) -> tuple[int, int, int, int]:
        return self.random_seed, self.id, self.superstep, self.view.next_draw()

    def vote_to_halt(self) -> None:
        """Sleep until a message arrives."""
        self.view.halt()

    def retire(self) -> None:
        """Halt for good: later messages are dropped unread."""
        self.view.retire()

    def __setattr__(self, name: str, value: Any) -> None:
        declared = self.declaration
        field = next((f for f in declared.states if f.name == name), None)
        record = next((r for r in declared.records if r.name == name), None)
        if name == "view":
            object.__setattr__(self, name, value)
        elif field is not None:
            object.__setattr__(self, name, field.assigned(value))
        elif record is not None:
            object.__setattr__(self, name, record.build(record.values(value)))
        elif isinstance(getattr(type(self), name, None), Aggregator):
            getattr(type(self), name).__set__(self, value)
        elif any(name == f.name for f in declared.edge_states):
            raise AttributeError(f"{name!r} is kept on edges: assign edge.{name} of an out-edge")
        elif any(name == f.name for f in declared.params):
            raise AttributeError(f"{name!r} is a parameter of the run; compute() cannot assign it")
        else:
            raise AttributeError(
                f"{type(self).__name__} declares no field {name!r}: write '{name}: State[float] = 0.0' there"
            )


def _checked_precision(cls: type, precision: Any) -> Literal["single", "double"]:
    if precision not in ("single", "double"):
        raise CompileError(f"{cls.__name__}: precision={precision!r} must be 'single' or 'double'")
    return precision  # type: ignore[no-any-return]


def _checked_factor(cls: type, factor: Any) -> float:
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 1:
        raise CompileError(
            f"{cls.__name__}: asynchronous={factor!r} must be a number between 0 and 1: by how much compute() brings "
            "any two states nearer to each other, as 0.85 of PageRank"
        )
    return float(factor)
