"""Which functions of NetworkX are served, and which calls of them."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import networkx as nx

from sigps.networkx.converted import ConvertedGraph

__all__ = ["CALLS", "SERVED", "Served", "graph_of", "reason_against", "serves"]

F = TypeVar("F", bound=Callable[..., Any])
Obstacle = Callable[[dict[str, Any]], str | None]


@dataclass(frozen=True)
class Served:
    """A function of NetworkX as this backend has it.

    Attributes:
        function: It; it takes a `ConvertedGraph`.
        weight: The name of its argument that names the weight, if it has one.
        multigraph: Whether parallel edges change nothing, or count as in NetworkX.
        obstacle: From the arguments by name, why a call is not served; None if it is.
    """

    function: Callable[..., Any]
    weight: str | None
    multigraph: bool
    obstacle: Obstacle | None
    signature: inspect.Signature


SERVED: dict[str, Served] = {}
"""By NetworkX's name."""

CALLS: Counter[str] = Counter()
"""How many calls of each function were answered; of those that yield, how many began."""


def serves(
    *,
    weight: str | None = None,
    multigraph: bool = True,
    not_for: str | None = None,
    obstacle: Obstacle | None = None,
    name: str | None = None,
) -> Callable[[F], F]:
    """Register a function under its name.

    Args:
        weight: As in `Served`.
        multigraph: As in `Served`.
        not_for: `"directed"`, `"undirected"` or `"multigraph"`, for which NetworkX raises, and so does this.
        obstacle: As in `Served`.
        name: NetworkX's name, where another function of the backend has it.
    """

    def register(function: F) -> F:
        named = name or function.__name__
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def counted(*args: Any, **kwargs: Any) -> Any:
                CALLS[named] += 1
                yield from function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def counted(*args: Any, **kwargs: Any) -> Any:
                result = function(*args, **kwargs)
                CALLS[named] += 1
                return result

        made: Any = nx.utils.not_implemented_for(not_for)(counted) if not_for else counted
        SERVED[named] = Served(made, weight, multigraph, obstacle, inspect.signature(function))
        return function

    return register


_PLAIN = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


def graph_of(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the graph of a call, by whatever name or position it is given."""
    return next(iter(SERVED[name].signature.bind(*args, **kwargs).arguments.values()))


def reason_against(name: str, args: Any, kwargs: dict[str, Any]) -> str | None:
    """Return why a call cannot be served; None if it can."""
    served = SERVED[name]
    try:
        bound = served.signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    bound.apply_defaults()
    given = dict(bound.arguments)
    graph = next(iter(given.values()))
    if not isinstance(graph, ConvertedGraph):
        if type(graph) not in _PLAIN:
            return f"{type(graph).__name__} is no plain class of NetworkX, and may show other edges than it holds"
        if type(graph._adj) is not dict or type(graph._node) is not dict or hasattr(graph, "_graph"):
            return "the graph is a view; G.copy() is none"
    if graph.is_multigraph() and not served.multigraph:
        return f"{name} of sigps takes no multigraph"
    weight = given.get(served.weight) if served.weight else None
    if callable(weight):
        return "weights are computed by a function"
    return served.obstacle(given) if served.obstacle else None
