"""Resuming from a state log: the newest one that belongs to a job, its rows sent to the ranks that own them."""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.fingerprint import class_fingerprint, fingerprint
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import SuperstepStats
from sigps.errors import StateLogError
from sigps.graph.fingerprint import fingerprint as graph_fingerprint
from sigps.graph.graph import Graph
from sigps.graph.partitioning.partition import Assignment
from sigps.group import Group, split_by_rank, together
from sigps.model.vertex import Vertex
from sigps.system.checkpoint import files
from sigps.system.checkpoint.files import Manifest

__all__ = ["Identity", "find_log", "read_snapshot", "stats_of"]

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Identity:
    """What a run must have in common with a log to go on from it.

    Attributes:
        program_key: A hash of the bytecode of its methods, of the functions and values that these name, of its
            parameters, and of what it declares. It differs between versions of Python.
        arrays: The types of the arrays that a log has of its vertices, and of what they keep on edges, by name and in
            its order.
        aggregators: The names of the aggregators.
        graph_key: A hash of the graph, with the vertex columns that states begin with; the same for every number of
            ranks.
    """

    program: str
    program_key: str
    graph_key: str
    arrays: Mapping[str, str]
    aggregators: tuple[str, ...]

    @classmethod
    def of(
        cls,
        program: Vertex,
        graph: Graph,
        precision: Literal["single", "double"],
        initial: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    ) -> Identity:
        """Return the identity of a run; the program has the user's vertex ids. Collective; O(edges) once a graph.

        `initial` are the values that the run gives states to begin with, [num_vertices] each, by name.
        """
        declared = program.declaration
        parts = [repr(program.params), class_fingerprint(type(program))]
        functions = [declared.combiner, *(a.function for a in declared.aggregators)]
        parts += [fingerprint(function, set()) for function in functions]
        parts += [
            f"{f.name} {f.dtype(precision)} {f.default} {f.measure}"
            for f in (*declared.states, *declared.message, *declared.edge_states)
        ]
        parts += [f"{f.name} from {f.column}" for f in declared.states if f.column is not None]
        parts += [f"{name} begins {zlib.crc32(values.tobytes())}" for name, values in sorted(initial.items())]
        parts += [f"seed {program.random_seed}"] if program.random_seed else []
        parts += [f"{a.name} {a.kind} {a.identity} {a.start} {a.persistent}" for a in declared.aggregators]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        named = {f.column.name for f in declared.states if f.column is not None}
        columns = tuple(sorted(named & graph.vertex_columns.keys()))
        arrays = {"gids": "<i8", "status": "|u1"}
        arrays |= {f"state.{f.name}": _text_of(f.dtype(precision)) for f in declared.states}
        arrays |= {"sources": "<i8"} if declared.edge_states else {}
        arrays |= {f"edge.{f.name}": _text_of(f.dtype(precision)) for f in declared.edge_states}
        names = tuple(a.name for a in declared.aggregators)
        return cls(type(program).__qualname__, key, graph_fingerprint(graph, columns), arrays, names)


def _text_of(dtype: np.dtype[Any]) -> str:
    return files.dtype_text(np.empty((0, *dtype.shape), dtype.base))


def find_log(
    folder: Path, identity: Identity, group: Group, max_supersteps: int | None = None
) -> Manifest | None:
    """Return the newest log that this run can go on from; None where there is no log. Collective.

    Each rank reads its share of a log's parts and compares them with their checksums. A log that is damaged, or of
    another job, is named in a warning, and the next older one is tried.

    Args:
        folder: The folder that the logs lie in.
        identity: The run's.
        group: The ranks of this run; the log may have been written by any number of them.
        max_supersteps: Where this run ends at the latest: it cannot go on from a log beyond that.

    Raises:
        StateLogError: If there are logs, and none can be used.
    """
    names = group.broadcast([path.name for path in files.find_logs(folder)] if group.rank == 0 else [])
    problems = []
    for name in names:
        manifest, problem = None, ""
        try:
            manifest = _checked(folder / name, identity, group, max_supersteps)
        except StateLogError as error:
            problem = str(error)
        found = [text for text in group.all_gather(problem) if text]
        if not found:
            return manifest
        problems.append(found[0])
        if group.rank == 0:
            log.warning("the state log %s is not used: %s", folder / name, found[0])
    if problems:
        raise StateLogError(
            f"none of the {len(problems)} state logs in {folder} can be used; the newest: {problems[0]}. "
            "Leave --resume out to begin anew, or name the folder of this job's logs"
        )
    return None


def _checked(folder: Path, identity: Identity, group: Group, max_supersteps: int | None) -> Manifest:
    """Return a log's manifest; this rank verifies its share of the parts."""
    manifest = files.read_manifest(folder)
    if manifest.program != identity.program:
        raise StateLogError(f"it is of the program {manifest.program}, and this one is {identity.program}")
    if manifest.graph_key != identity.graph_key:
        raise StateLogError(
            f"it is of another graph ({manifest.num_vertices:,} vertices, {manifest.num_edges:,} edges, "
            f"checksum {manifest.graph_key}; this one has {identity.graph_key})"
        )
    if manifest.program_key != identity.program_key:
        raise StateLogError(
            f"it is of {manifest.program} with another source, parameters or precision than this one, or with other "
            "values of initial="
        )
    found = {name: dtype for name, dtype in manifest.dtypes.items() if name in identity.arrays}
    states = [name for name in identity.arrays if name.startswith("state.")]
    if (
        list(found.items()) != list(identity.arrays.items())
        or [f"state.{name}" for name in manifest.states] != states
        or tuple(manifest.aggregators) != identity.aggregators
    ):
        raise StateLogError("it is damaged: it does not hold the states and aggregators of its own program")
    if max_supersteps is not None and manifest.superstep > max_supersteps:
        raise StateLogError(
            f"it is {manifest.superstep} supersteps far, and max_supersteps is {max_supersteps}"
        )
    for rank in range(group.rank, len(manifest.parts), group.size):
        files.verify_part(folder, manifest, rank)
    return manifest


def stats_of(manifest: Manifest) -> list[SuperstepStats]:
    """Return the statistics of the supersteps before a log.

    Raises:
        StateLogError: If it has none of that form.
    """
    try:
        return [SuperstepStats(*row) for row in manifest.stats]
    except TypeError as error:
        raise StateLogError(f"the state log {manifest.name} is damaged: {error}") from None


def read_snapshot(folder: Path, manifest: Manifest, group: Group, assignment: Assignment) -> Snapshot:
    """Return what was saved of the vertices that this rank owns. Collective; one pass over the log.

    Args:
        folder: The folder that the logs lie in.
        manifest: The log's manifest.
        group: The ranks of this run.
        assignment: Which of them owns which vertex; any number of others may have written the log.

    Raises:
        StateLogError: If a part cannot be read, or vertices are missing.
    """
    of_vertices = [
        name for name in manifest.dtypes if name in ("gids", "status") or name.startswith("state.")
    ]
    in_flight = [manifest.in_flight, *manifest.values]
    kept = [name for name in manifest.dtypes if name == "sources" or name.startswith("edge.")]
    parts = [
        files.read_part(folder / manifest.name, manifest, rank, [*of_vertices, *in_flight, *kept])
        for rank in range(group.rank, len(manifest.parts), group.size)
    ]
    vertices = _routed(parts, of_vertices, manifest.dtypes, group, assignment)
    together(lambda: _check_all_there(vertices[0], assignment.owned(group.rank), manifest), group)
    messages = _routed(parts, in_flight, manifest.dtypes, group, assignment)
    edges = (
        _routed(parts, kept, manifest.dtypes, group, assignment) if kept else [np.empty(0, dtype=np.int64)]
    )
    return Snapshot(
        superstep=manifest.superstep,
        gids=vertices[0],
        status=vertices[1],
        states=tuple(vertices[2:]),
        in_flight=manifest.in_flight,
        ends=messages[0],
        values=tuple(messages[1:]),
        aggregates=tuple(manifest.aggregators.values()),
        sources=edges[0],
        edges=tuple(edges[1:]),
    )


def _check_all_there(gids: NDArray[np.int64], owned: NDArray[np.int64], manifest: Manifest) -> None:
    if not np.array_equal(np.sort(gids), owned):
        raise StateLogError(f"the state log {manifest.name} is damaged: it does not hold each vertex once")


def _routed(
    parts: list[Arrays], names: list[str], dtypes: dict[str, str], group: Group, assignment: Assignment
) -> list[NDArray[Any]]:
    """Send rows to the owners of the gids in the first array; those of one gid keep their order."""
    rows = [
        np.concatenate([np.empty(0, dtype=dtypes[name]), *[part[name] for part in parts]]) for name in names
    ]
    order, cuts = split_by_rank(assignment.owner_of(rows[0]), group.size)
    return [np.concatenate(group.all_to_all([values[order[cut]] for cut in cuts])) for values in rows]
