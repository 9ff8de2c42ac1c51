"""GML files, which NetworkX parses: a directed or undirected graph, nodes with ids and labels, edges with attributes.

Every rank parses the whole file and keeps its share.
Format: Himsolt, "GML: A portable Graph File Format", University of Passau, 1997.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile, import_optional
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.formats.networkx_graphs import read_networkx
from sigps.group import Group

__all__ = ["read_gml"]


def read_gml(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read a GML file. The ids are the nodes' numbers, with `ids="string"` their labels.

    `weights=True` is the attribute `weight`, else `value`.

    Raises:
        GraphError: If the file is wrong, an edge lacks a requested attribute, or `directed` contradicts the file.
    """
    import_optional("networkx", f"{path}: reading GML")
    import networkx

    try:
        found: Any = networkx.parse_gml(_lines(path), label="label" if options.ids == "string" else "id")
    except GraphError:
        raise
    except Exception as error:  # NetworkX has no one kind of error for all that a file may hold
        raise GraphError(f"{path}: cannot be read as GML ({type(error).__name__}: {error})") from error
    if options.directed not in (None, found.is_directed()):
        kind = "directed" if found.is_directed() else "undirected"
        raise GraphError(f"{path}: the file declares a {kind} graph; leave directed= away")
    if options.ids == "string":
        found = _with_texts(path, found)
    columns = _attributes(path, found, options)
    try:
        result = read_networkx(found, None, columns, {}, group)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error
    result.format = "gml"
    kept = {*columns.values()}
    if left := sorted({key for *_, data in found.edges(data=True) for key in data} - kept):
        result.notes.append(f"edge attributes not read: {', '.join(left)} (weights= and columns= read them)")
    return result


def _lines(path: Path) -> Iterator[str]:
    for number, (_, line) in enumerate(TextFile(path).lines(), start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise GraphError(f"{path}:{number}: the line is not UTF-8 text ({error.reason})") from None


def _with_texts(path: Path, found: Any) -> Any:
    """Return the graph with texts for its labels, some of which may be numbers."""
    import networkx

    named = networkx.relabel_nodes(found, str)
    if len(named) != len(found):
        raise GraphError(
            f"{path}: two labels differ only in that one is a number and one is text; rename one"
        )
    return named


def _attributes(path: Path, found: Any, options: LoadOptions) -> dict[str, str]:
    """Return the attribute for each column that is asked for; all its values are finite numbers."""
    wanted: dict[str, Any] = dict(options.columns or {})
    if options.weights is True:
        has_weight = any("weight" in data for *_, data in found.edges(data=True))
        wanted = {"weight": "weight" if has_weight else "value", **wanted}
    elif options.weights not in (None, False):
        wanted = {"weight": options.weights, **wanted}
    for name, key in wanted.items():
        if not isinstance(key, str):
            raise GraphError(f"{path}: the column for {name!r} is {key!r}; give the name of an attribute")
        for source, target, value in found.edges(data=key):
            limit = 2**63 if isinstance(value, int) else math.inf
            if not isinstance(value, int | float) or not abs(value) < limit:
                problem = (
                    f"has no {key}"
                    if value is None
                    else f"has the {key} {value!r}, which is no finite number"
                )
                raise GraphError(
                    f"{path}: the edge from {source!r} to {target!r} {problem}; every edge needs one"
                )
    return wanted
