"""What states begin with: what the user gives (an array, values of some ids, an earlier result), or vertex columns."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError, GraphError, nearest
from sigps.graph.graph import Graph
from sigps.job.result import Result
from sigps.model.fields import NO_VERTEX, Field
from sigps.model.vertex import Vertex

__all__ = ["check_ids", "column_values", "initial_values", "with_initial"]


def initial_values(
    program: Vertex, graph: Graph, given: Any, precision: Literal["single", "double"]
) -> dict[str, NDArray[Any]]:
    """Return the values with which states begin, [num_vertices] in ascending order of ids, by their names.

    Args:
        program: The program.
        graph: The graph.
        given: By the name of a state: an array, [num_vertices] in that order, or the values of some vertices by their
            ids; or an earlier result, of which the states of the same names are taken. None for no values.
        precision: The array type of Python's `float`.

    Raises:
        ConfigError: If there is no such state, or it is not given what it can hold.
        GraphError: If an id is not in the graph.
    """
    if given is None:
        return {}
    fields = {field.name: field for field in program.declaration.states}
    if isinstance(given, Result):
        if given.num_vertices != graph.num_vertices:
            raise ConfigError(
                f"initial= is a result of {given.num_vertices:,} vertices, and the graph has {graph.num_vertices:,}: "
                "give the values of vertices by their ids"
            )
        given = {name: given[name] for name in fields if name in given.fields}
    if not isinstance(given, Mapping):
        raise ConfigError(f"initial={given!r} must give values by the names of states, or be a result")
    found = {}
    for name, values in given.items():
        if name not in fields:
            states = ", ".join(fields) or "none"
            raise ConfigError(
                f"initial={name!r}: {type(program).__name__} has the states {states}{nearest(name, fields)}"
            )
        found[name] = _values(fields[name], values, graph, precision)
    return found


def with_initial(program: Vertex, initial: Mapping[str, Any]) -> Vertex:
    """Return a program of which some states begin with what the run gives, whatever the class says."""
    if not initial:
        return program
    declared, given = program.declaration, copy.copy(program)
    states = tuple(
        replace(f, measure=None, column=None, is_given=True) if f.name in initial else f
        for f in declared.states
    )
    object.__setattr__(given, "declaration", replace(declared, states=states))
    return given


def check_ids(program: Vertex, graph: Graph) -> None:
    """Check that no vertex has the id that stands for None, where a program has fields that may be None. Collective.

    Raises:
        GraphError: If one has.
    """
    if graph.ids.kind == "strings" or not program.declaration.may_be_none:
        return
    if graph.num_vertices and graph.derived("least id", lambda: int(graph.ids.to_oids([0])[0])) == NO_VERTEX:
        raise GraphError(
            f"{type(program).__name__} has a field of VertexId | None, in which {NO_VERTEX} stands for None, and a "
            "vertex has that id: give it another"
        )


def column_values(
    program: Vertex, graph: Graph, precision: Literal["single", "double"]
) -> dict[str, NDArray[Any]]:
    """Return the values of vertex columns with which states begin, of this rank's rows, by names of the states.

    Raises:
        ConfigError: If a state cannot hold the values of its column.
        GraphError: If the graph has no such column.
    """
    found = {}
    for field in program.declaration.states:
        if field.column is None:
            continue
        name, columns = field.column.name, graph.vertex_columns
        if name not in columns and field.column.default is not None:
            one = np.full(1, field.column.default, field.dtype(precision))
            found[field.name] = np.broadcast_to(one, (graph.num_rows, *one.shape[1:]))
            continue
        if name not in columns:
            known = ", ".join(columns) or "none"
            raise GraphError(
                f"{type(program).__name__}.{field.name} begins with the vertex column {name!r}, and the graph has no "
                f"such column; it has: {known}{nearest(name, columns)} Give it: "
                f"graph.with_vertex_columns({{{name!r}: values}}), or 'vertices: FILE' below 'graph' in a job, or "
                f"run(..., initial={{{field.name!r}: values}})"
            )
        where = f"the vertex column {name!r}"
        found[field.name] = _converted(field, columns[name], graph, field.dtype(precision), where)
    return found


def _values(field: Field, given: Any, graph: Graph, precision: Literal["single", "double"]) -> NDArray[Any]:
    where, dtype = f"initial={field.name!r}", field.dtype(precision)
    if isinstance(given, Mapping):
        values = np.full((graph.num_vertices, *dtype.shape), field.default, dtype.base)
        gids = _gids(graph, np.asarray(list(given)), where)
        values[gids] = _converted(field, _as_array(field, list(given.values())), graph, dtype, where)
        return values
    values = _as_array(field, given.get() if hasattr(given, "get") else given)
    if values.shape != (graph.num_vertices, *dtype.shape):
        row = f", {dtype.shape[0]} numbers each" if dtype.shape else ""
        raise ConfigError(
            f"{where} has the shape {values.shape}, and the graph has {graph.num_vertices:,} vertices{row}: give one "
            "value a vertex, in ascending order of ids (result.ids), or values by ids: {id: value}"
        )
    return _converted(field, values, graph, dtype, where)


def _as_array(field: Field, given: Any) -> NDArray[Any]:
    """Return values as an array; with None, or masked, where the field may be None, as one of objects."""
    if field.may_be_none and isinstance(given, np.ma.MaskedArray):
        return np.array(given.tolist(), dtype=object)
    values = np.asarray(given)
    is_mixed = field.may_be_none and values.dtype.kind == "O"
    return values if not is_mixed else np.array(values.tolist(), dtype=object)


def _converted(
    field: Field, values: NDArray[Any], graph: Graph, dtype: np.dtype[Any], where: str
) -> NDArray[Any]:
    if field.may_be_none and values.dtype.kind == "O":
        is_none = np.array([value is None for value in values.tolist()], dtype=bool)
        found = np.full(values.size, NO_VERTEX, dtype)
        if not is_none.all():
            found[~is_none] = _converted(field, np.array(values[~is_none].tolist()), graph, dtype, where)
        return found
    if field.is_vertex_id and graph.ids.kind == "strings" and values.shape[1:] == dtype.shape:
        names = values.ravel()
        found = np.full(names.size, -1, dtype.base)  # what a result shows as None is no vertex
        is_id = np.array([name is not None for name in names.tolist()], dtype=bool)
        found[is_id] = _gids(graph, np.array(names[is_id].tolist()), where)
        return found.reshape(values.shape)
    if values.shape[1:] != dtype.shape:
        each = f"rows of {values.shape[1]} numbers" if values.ndim > 1 else "one number a vertex"
        kind = f"is {field.type}" if dtype.shape else "is one number"
        raise ConfigError(f"{where} has {each}, and the state {field.name!r} {kind}")
    dtype = dtype.base
    if values.dtype.kind not in "biuf":
        raise ConfigError(f"{where} holds {values.dtype} values, and the state is {field.type}: give numbers")
    if dtype.kind == "b" and values.dtype.kind != "b":
        raise ConfigError(
            f"{where} holds {values.dtype} values, and the state is a truth value: give True and False"
        )
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        fits = (values >= bounds.min) & (values <= bounds.max) & (values == np.floor(values))
        if not fits.all():
            wrong = values.ravel()[int(np.argmin(fits))]
            raise ConfigError(f"{where}: {wrong} is no whole number that {dtype} can hold")
    converted: NDArray[Any] = values.astype(dtype)
    return converted


def _gids(graph: Graph, oids: NDArray[Any], where: str) -> NDArray[np.int64]:
    if not oids.size:
        return np.empty(0, dtype=np.int64)
    try:
        gids = graph.ids.to_gids(oids)
    except GraphError as error:
        raise GraphError(f"{where}: {error}") from None
    if (gids < 0).any():
        raise GraphError(f"{where}: there is no vertex {oids[int(np.argmin(gids))].item()!r} in the graph")
    return gids
