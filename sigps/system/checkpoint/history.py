"""The state logs in a folder: which there are, whether they are damaged, and the states of a vertex in each.

    for log in history("log"):                          # oldest first
        print(log.path, log.problem or log.manifest.superstep)
    states, problems = follow(history("log"), [17])     # vertex 17 in every log

Reads files and changes none; needs neither the job nor its graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigps.errors import GraphError, StateLogError
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, RETIRED
from sigps.model.fields import NO_VERTEX
from sigps.system.checkpoint import files
from sigps.system.checkpoint.files import Manifest

__all__ = ["KeptLog", "VertexState", "damages", "follow", "history", "vertex_states"]

VertexId = int | str

_STATUS = {ACTIVE: "active", HALTED: "halted", RETIRED: "retired"}


@dataclass(frozen=True)
class KeptLog:
    """One finished log of a folder.

    Attributes:
        manifest: Its manifest; None where that cannot be read.
        problem: Why it cannot be read; empty where it can.
    """

    path: Path
    manifest: Manifest | None
    problem: str = ""


@dataclass(frozen=True)
class VertexState:
    """One vertex between two supersteps.

    Attributes:
        superstep: The superstep that came next.
        status: `"active"`, `"halted"` or `"retired"`.
        values: Each field's value as saved. A field of type `VertexId` holds a gid: the vertex's position in the
            order of ids, counted from 0; one of `VertexId | None` may be None.
    """

    run: str
    program: str
    superstep: int
    status: str
    values: dict[str, Any]


def history(folder: str | Path) -> list[KeptLog]:
    """Return the finished logs of a folder, the oldest first. Reads the manifests only.

    Raises:
        StateLogError: If there is no such folder, or no finished log in it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise StateLogError(f"{folder}: there is no such folder; name the checkpoint.dir of a job")
    found = files.find_logs(folder)
    if not found:
        begun = len(files.find_unfinished(folder))
        rest = f" ({begun} begun and not finished)" if begun else ""
        raise StateLogError(
            f"{folder}: no finished state log lies here{rest}; name the checkpoint.dir of a job that has saved "
            "its state, the folder that the logs lie in"
        )
    return [_opened(path) for path in reversed(found)]


def damages(log: Path, manifest: Manifest) -> list[str]:
    """Return what is wrong with the parts of a log, one text for each damaged part. Reads every byte."""
    problems = []
    for rank in range(len(manifest.parts)):
        try:
            files.verify_part(log, manifest, rank)
        except StateLogError as error:
            problems.append(str(error))
    return problems


def follow(
    logs: Iterable[KeptLog], ids: Sequence[VertexId]
) -> tuple[dict[VertexId, list[VertexState]], list[str]]:
    """Return the states of some vertices in each log, and what is wrong with the logs that cannot be read.

    Of each part, reads the ids and, where one of these vertices lies, the fields.

    Args:
        logs: As `history` returns them.
        ids: The user's ids of the vertices; whole numbers may be given as text.

    Raises:
        GraphError: If a vertex is in no log.
        StateLogError: If no log can be read.
    """
    states: dict[VertexId, list[VertexState]] = {vertex: [] for vertex in ids}
    problems, read = [], []
    for log in logs:
        try:
            if log.manifest is None:
                raise StateLogError(log.problem)
            for vertex, state in vertex_states(log.path, log.manifest, ids).items():
                states[vertex].append(state)
            read.append(log.manifest)
        except StateLogError as error:
            problems.append(str(error))
    if not read:
        raise StateLogError(f"none of the {len(problems)} logs can be read; the newest: {problems[-1]}")
    missing = [vertex for vertex in states if not states[vertex]]
    if missing:
        raise GraphError(_missing(missing, read[-1], len(problems)))
    return states, problems


def vertex_states(log: Path, manifest: Manifest, ids: Sequence[VertexId]) -> dict[VertexId, VertexState]:
    """Return the states of those of some vertices, given as to `follow`, that one log has.

    Raises:
        StateLogError: If a part cannot be read.
    """
    keys = {vertex: key for vertex in ids if (key := _key(vertex, manifest)) is not None}
    name = "oids" if manifest.id_kind in ("table", "strings") else "gids"
    fields = ["status", *(f"state.{field}" for field in manifest.states)]
    found = {}
    for rank in range(len(manifest.parts)):
        here = files.read_part(log, manifest, rank, [name])[name]
        rows = {vertex: row for vertex, key in keys.items() for row in np.flatnonzero(here == key)}
        if rows:
            _, status, *values = files.read_part(log, manifest, rank, [name, *fields]).values()
        for vertex, row in rows.items():
            fields_of = {name: array[row] for name, array in zip(manifest.states, values, strict=True)}
            fields_of |= {name: None for name in manifest.optional if fields_of[name] == NO_VERTEX}
            found[vertex] = VertexState(
                manifest.run, manifest.program, manifest.superstep, _STATUS[int(status[row])], fields_of
            )
    return found


def _opened(path: Path) -> KeptLog:
    try:
        return KeptLog(path, files.read_manifest(path))
    except StateLogError as error:
        return KeptLog(path, None, str(error))


def _key(vertex: VertexId, manifest: Manifest) -> VertexId | None:
    """Return the vertex's key in a part: its id, or its gid where ids are consecutive; None if it is no id."""
    if manifest.id_kind == "strings":
        return str(vertex)
    try:
        number = int(vertex)
    except ValueError:
        return None
    if manifest.id_kind == "table":
        return number if -(2**63) <= number < 2**63 else None
    gid = number - manifest.id_base
    return gid if 0 <= gid < manifest.num_vertices else None


def _missing(missing: list[VertexId], manifest: Manifest, num_problems: int) -> str:
    names = ", ".join(repr(vertex) for vertex in missing)
    num, base = manifest.num_vertices, manifest.id_base
    if manifest.id_kind == "strings":
        rule = f"the {num:,} ids there are text"
    elif manifest.id_kind == "table":
        rule = f"the {num:,} ids there are whole numbers, not all from the least to the greatest"
    else:
        rule = f"ids there are {base} to {base + num - 1}"
    unread = f"; {num_problems} logs could not be read" if num_problems else ""
    return (
        f"no log has vertex {names}: {rule}{unread}. Give ids as they stand in the graph's file or the result"
    )
