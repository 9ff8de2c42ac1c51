"""Where a stream of updates was: a job killed at any moment goes on there, and no batch is lost or applied twice.

A log is a folder `batch-<number>`: the graph after that batch as a native store, the edges in the window, and what job
it belongs to. It is there when it is whole. The result is not in it: a run on that graph makes it again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sigps.errors import GraphError, StateLogError
from sigps.graph.graph import Graph
from sigps.graph.load import load
from sigps.group import Group
from sigps.job.window import WindowState
from sigps.whole_files import sync, write_folder

__all__ = ["StreamLog"]

_PREFIX, _STATE, _GRAPH, _WINDOW = "batch-", "stream.json", "graph", "window.npz"


class StreamLog:
    """The logs of one job, which its ranks write together, and which any number of ranks reads.

    Args:
        folder: Where they are; made if need be.
        identity: What the job is, in plain data: only its own logs are read.
        keep: How many to keep.
        group: The ranks.
        anew: Whether the job begins at its first batch: then the first log that it writes replaces what is there.
    """

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], keep: int, group: Group, *, anew: bool
    ) -> None:
        self._folder, self._keep, self._group = folder, keep, group
        self._replaced = self._paths() if anew else []
        self._identity = json.loads(json.dumps(identity))

    def save(self, number: int, graph: Graph, window: WindowState | None) -> Path:
        """Write the log after a batch, and remove those that are not to be kept. Collective.

        Raises:
            StateLogError: If it cannot be written.
        """
        path = self._folder / f"{_PREFIX}{number:09d}"

        def write(folder: Path) -> None:
            graph.save(folder / _GRAPH)
            if window is not None and self._group.rank == 0:
                with open(folder / _WINDOW, "wb") as file:
                    np.savez(file, **window.arrays())  # type: ignore[arg-type]
                sync(folder / _WINDOW)

        def finish(folder: Path, _: Any) -> None:
            report = graph.report
            state = {
                "format": 1,
                "batches": number,
                "identity": self._identity,
                "duplicates": report.duplicates_policy,
                "self_loops": report.self_loops_policy,
            }
            (folder / _STATE).write_text(json.dumps(state))
            sync(folder / _STATE)

        self._folder.mkdir(parents=True, exist_ok=True)
        write_folder(
            path, self._group, write=write, finish=finish, problem=lambda error: _failed(path, error)
        )
        if self._group.rank:
            return path
        replaced, self._replaced = [old for old in self._replaced if old != path], []
        for old in (*replaced, *[kept for kept in self._paths() if kept not in replaced][self._keep :]):
            shutil.rmtree(old, ignore_errors=True)
        return path

    def newest(self) -> tuple[int, Graph, WindowState | None] | None:
        """Return the newest log's batch number, graph and window; None where there is none. Collective.

        Raises:
            StateLogError: If it is another job's, or damaged.
        """
        for name in self._group.broadcast([path.name for path in self._paths()[:1]]):
            path = self._folder / name
            try:
                state = json.loads((path / _STATE).read_text())
            except (OSError, ValueError) as error:
                raise StateLogError(f"the log {path} cannot be read: {error}") from None
            differs = [k for k, v in self._identity.items() if state.get("identity", {}).get(k) != v]
            if differs:
                raise StateLogError(
                    f"the log {path} is another job's: its {differs[0]} differs. Choose another checkpoint.dir, or "
                    "leave --resume out"
                )
            try:
                graph = load(path / _GRAPH, verify="full", group=self._group)
            except GraphError as error:
                raise StateLogError(f"the log {path} is damaged: {error}") from None
            graph.report.duplicates_policy = state["duplicates"]
            graph.report.self_loops_policy = state["self_loops"]
            window = None
            if (path / _WINDOW).exists():
                with np.load(path / _WINDOW) as arrays:
                    window = WindowState.of(arrays)
            return int(state["batches"]), graph, window
        return None

    def _paths(self) -> list[Path]:
        found = [p for p in self._folder.glob(f"{_PREFIX}*") if p.name[len(_PREFIX) :].isdecimal()]
        return sorted(found, reverse=True)


def _failed(path: Path, error: OSError) -> StateLogError:
    return StateLogError(f"cannot write the log {path}: {error}")
