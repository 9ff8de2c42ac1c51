"""From a state log back to a run: the newest log that is whole and this run's, shared out to whoever owns what."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import SuperstepStats
from sigps.errors import StateLogError
from sigps.graph.partitioning.partition import Assignment
from sigps.group import Group, split_by_rank
from sigps.system.checkpoint import log_files
from sigps.system.checkpoint.identity import Identity
from sigps.system.checkpoint.log_files import Manifest

__all__ = ["find_log", "read_snapshot", "stats_of"]

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


def find_log(
    folder: Path, identity: Identity, group: Group, max_supersteps: int | None = None
) -> Manifest | None:
    """Return the newest log that this run can go on from; None where nothing was ever logged. Collective.

    Every part is read and compared with its checksums. A log that is damaged, or another job's, is named in a
    warning, and the one before it is looked at.

    Args:
        folder: Where logs are.
        identity: What the run is.
        group: The ranks of this run; the log may have been written by any number of them.
        max_supersteps: Where this run ends at the latest; logs beyond that are of no use.

    Raises:
        StateLogError: If there are logs, and none can be used.
    """
    names = group.broadcast([path.name for path in log_files.find_logs(folder)] if group.rank == 0 else [])
    problems = []
    for name in names:
        manifest, problem = _looked_at(folder / name, identity, group, max_supersteps)
        told = [text for text in group.all_gather(problem) if text]
        if not told:
            return manifest
        problems.append(told[0])
        if group.rank == 0:
            log.warning("the state log %s is not used: %s", folder / name, told[0])
    if problems:
        raise StateLogError(
            f"none of the {len(problems)} state logs in {folder} can be used; the newest: {problems[0]}. "
            "Leave --resume out to begin anew, or name the folder of this job's logs"
        )
    return None


def _looked_at(
    folder: Path, identity: Identity, group: Group, max_supersteps: int | None
) -> tuple[Manifest | None, str]:
    """Return a log's manifest, or what is wrong with it as far as this rank sees."""
    try:
        return _checked(folder, identity, group, max_supersteps), ""
    except StateLogError as error:
        return None, str(error)


def _checked(folder: Path, identity: Identity, group: Group, max_supersteps: int | None) -> Manifest:
    """Return a log's manifest; this rank verifies its share of the parts."""
    manifest = log_files.read_manifest(folder)
    if manifest.program != identity.program:
        raise StateLogError(f"it is of the program {manifest.program}, and this one is {identity.program}")
    if manifest.graph_key != identity.graph_key:
        raise StateLogError(
            f"it is of another graph ({manifest.num_vertices:,} vertices, {manifest.num_edges:,} edges, "
            f"checksum {manifest.graph_key}; this one has {identity.graph_key})"
        )
    if manifest.program_key != identity.program_key:
        raise StateLogError(
            f"it is of {manifest.program} with another source, parameters or precision than this one"
        )
    if max_supersteps is not None and manifest.superstep > max_supersteps:
        raise StateLogError(
            f"it is {manifest.superstep} supersteps far, and max_supersteps is {max_supersteps}"
        )
    for rank in range(group.rank, len(manifest.parts), group.size):
        log_files.verify_part(folder, manifest, rank)
    return manifest


def stats_of(manifest: Manifest) -> list[SuperstepStats]:
    """Return the supersteps up to a log."""
    return [SuperstepStats(*row) for row in manifest.stats]


def read_snapshot(folder: Path, manifest: Manifest, group: Group, assignment: Assignment) -> Snapshot:
    """Return this rank's part of what was saved, whoever wrote it. Collective; one pass over the log.

    Args:
        folder: Where logs are.
        manifest: The log.
        group: The ranks of this run.
        assignment: Which of them owns which vertex.

    Raises:
        StateLogError: If a part cannot be read.
    """
    of_vertices = ["gids", "status", *(f"state.{name}" for name in manifest.states)]
    in_flight = ["ends", *(name for name in manifest.dtypes if name.startswith("value."))]
    kept = [name for name in manifest.dtypes if name == "sources" or name.startswith("edge.")]
    parts = [
        log_files.read_part(folder / manifest.name, rank, [*of_vertices, *in_flight, *kept])
        for rank in range(group.rank, len(manifest.parts), group.size)
    ]
    vertices = _routed(parts, of_vertices, manifest.dtypes, group, assignment)
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


def _routed(
    parts: list[Arrays], names: list[str], dtypes: dict[str, str], group: Group, assignment: Assignment
) -> list[NDArray[Any]]:
    """Send rows to the owners of the gids in the first array; those of one gid keep their order."""
    rows = [
        np.concatenate([np.empty(0, dtype=dtypes[name]), *[part[name] for part in parts]]) for name in names
    ]
    order, cuts = split_by_rank(assignment.owner_of(rows[0]), group.size)
    return [np.concatenate(group.all_to_all([values[order[cut]] for cut in cuts])) for values in rows]
