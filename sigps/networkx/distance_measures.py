"""networkx.algorithms.distance_measures: eccentricities, and the nodes where they are least and greatest."""

from __future__ import annotations

from typing import Any

from sigps.networkx.converted import ConvertedGraph
from sigps.networkx.serving import serves
from sigps.networkx.shortest_paths import eccentricities

__all__: list[str] = []


def _has_lengths(given: dict[str, Any]) -> str | None:
    return None if given["sp"] is None else "sp= is there already"


def _is_bounded(given: dict[str, Any]) -> str | None:
    if given["e"] is not None:
        return "e= is there already"
    return "usebounds=True is another method" if given["usebounds"] else None


@serves(weight="weight", obstacle=_has_lengths)
def eccentricity(G: ConvertedGraph, v: Any = None, sp: Any = None, weight: str | None = None) -> Any:
    found = eccentricities(G, G.positions(G.source.nbunch_iter(v)), weight)
    return found[v] if v in G else found


def _all(G: ConvertedGraph, weight: str | None) -> dict[Any, Any]:
    return eccentricities(G, range(len(G)), weight)


@serves(weight="weight", obstacle=_is_bounded)
def diameter(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: str | None = None) -> Any:
    return max(_all(G, weight).values())


@serves(weight="weight", obstacle=_is_bounded)
def radius(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: str | None = None) -> Any:
    return min(_all(G, weight).values())


@serves(weight="weight", obstacle=_is_bounded)
def center(G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: str | None = None) -> list[Any]:
    found = _all(G, weight)
    least = min(found.values())
    return [node for node, far in found.items() if far == least]


@serves(weight="weight", obstacle=_is_bounded)
def periphery(
    G: ConvertedGraph, e: Any = None, usebounds: bool = False, weight: str | None = None
) -> list[Any]:
    found = _all(G, weight)
    most = max(found.values())
    return [node for node, far in found.items() if far == most]
