"""The state logs of one run: what each rank holds between two supersteps, written while the next ones run.

    log = StateLog(checkpoint, identity, graph, program, device)
    log.save(engine.save, stats)     # collective; copies are made, a thread writes them
    log.close()                      # collective; waits for what is being written

A log that cannot be written costs a warning, not the run.
"""

from __future__ import annotations

import datetime
import logging
import math
import platform
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import SaveStats, SuperstepStats
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.model.vertex import Vertex
from sigps.system.checkpoint import files
from sigps.system.checkpoint.files import Manifest
from sigps.system.checkpoint.resume import Identity
from sigps.system.checkpoint.trace import write_trace
from sigps.system.checkpoint.writer import LogWriter
from sigps.version import __version__

__all__ = ["Checkpoint", "StateLog", "check_folder"]

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 2.0

Traced = list[dict[str, Any]] | None


@dataclass(frozen=True)
class Checkpoint:
    """When a run saves its state, and where: after so many supersteps or seconds, or the first of both.

    Args:
        dir: The folder, made if it is not there; all ranks must see it under this name.
        every: Supersteps from one log to the next.
        seconds: Seconds from one log to the next, checked between supersteps.
        keep: Logs to keep; older ones are removed when a new one is finished.

    Raises:
        ConfigError: If neither `every` nor `seconds` is given, or a number is too small.

    >>> Checkpoint("log", every=10).keep
    2
    """

    dir: str | Path
    every: int | None = None
    seconds: float | None = None
    keep: int = 2

    def __post_init__(self) -> None:
        if self.every is None and self.seconds is None:
            raise ConfigError("checkpoint: give every= (supersteps), seconds=, or both")
        for name in ("every", "keep"):
            value = getattr(self, name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if value is not None and not is_count:
                raise ConfigError(f"checkpoint: {name}={value!r} must be a whole number, at least 1")
        is_time = isinstance(self.seconds, (int, float)) and not isinstance(self.seconds, bool)
        if self.seconds is not None and not (is_time and 0 < self.seconds < math.inf):
            raise ConfigError(f"checkpoint: seconds={self.seconds!r} must be a finite number above 0")

    @property
    def folder(self) -> Path:
        return Path(self.dir)


def check_folder(folder: Path) -> None:
    """Check that a folder can be written, or made; leaves nothing behind.

    Raises:
        ConfigError: If not.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    probe = there / f".{secrets.token_hex(8)}.tmp"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(
            f"checkpoint: cannot write in {there}: {error.strerror}. Choose another dir"
        ) from None


class StateLog:
    """The saves of one run on one rank. `save` and `close` are collective, as is the constructor.

    Args:
        checkpoint: The folder, and how many logs to keep.
        identity: The run's.
        graph: The graph, for the vertices' ids.
        program: The program, for the names of its fields.
        device: The device that runs it, for the manifest.
        resumed: The name of the run whose log this one goes on from, if any.

    Attributes:
        saves: One record for each finished log.
        on_whole: Called on rank 0 with the folder of each log when it is finished, from a thread.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: Identity,
        graph: Graph,
        program: Vertex,
        device: str,
        resumed: str | None = None,
    ) -> None:
        self.checkpoint, self._identity, self._graph, self._device = checkpoint, identity, graph, device
        self._states = [f.name for f in program.declaration.states]
        self._optional = [f.name for f in program.declaration.states if f.may_be_none]
        self._on_edges = [f.name for f in program.declaration.edge_states]
        self._aggregators = [a.name for a in program.declaration.aggregators]
        self._group = graph.group
        self._run = self._group.broadcast(_next_run(checkpoint.folder) if self._group.rank == 0 else "")
        self._writer: LogWriter | None = None
        self._oids: NDArray[Any] | None = None
        self.saves: list[SaveStats] = []
        self._begun: SaveStats | None = None
        self._resumed = resumed
        self.on_whole: Callable[[Path], None] = lambda folder: None

    def save(
        self, snapshot_of: Callable[[], Snapshot], stats: Sequence[SuperstepStats], traced: Traced = None
    ) -> None:
        """Begin to write a log.

        Waits until the log before it is finished, and until all ranks have copied their state; a thread writes.

        Args:
            snapshot_of: Returns a copy of this rank's state; on a GPU it waits for the device.
            stats: One entry for each superstep so far.
            traced: What the interpreter has recorded so far; None where nothing is traced.
        """
        began = time.perf_counter()
        self._finish()
        self._write_trace(traced)
        snapshot = snapshot_of()
        arrays = self._arrays(snapshot)
        manifest = self._manifest(snapshot, arrays, stats)
        folder = self.checkpoint.folder / manifest.name
        problem = ""
        if self._group.rank == 0:
            try:
                files.begin_log(folder, manifest)
            except OSError as error:
                problem = f"cannot make {folder}: {error.strerror}"
        problem = self._group.broadcast(problem)
        num_bytes = sum(array.nbytes for array in arrays.values())
        if problem:
            self._warn(problem)
        else:
            rank, size = self._group.rank, self._group.size
            own = manifest if rank == 0 else None
            self._writer = LogWriter(folder, rank, arrays, own, size, self.checkpoint.keep, self.on_whole)
        own_costs = np.array([time.perf_counter() - began, num_bytes])
        costs = np.stack(self._group.all_gather_array(own_costs))  # [size, 2]: seconds, bytes
        seconds, num_bytes = float(costs[:, 0].max()), int(costs[:, 1].sum())
        self._begun = SaveStats(snapshot.superstep, seconds, num_bytes)

    def close(self, traced: Traced = None) -> None:
        """Wait until the last log is finished, and take away what an earlier run of the job left on its logs."""
        self._finish()
        if self._group.rank == 0:
            files.remove_marks(self.checkpoint.folder, self._identity.program_key, self._identity.graph_key)
        self._write_trace(traced)

    def settle(self) -> None:
        """Wait up to 2 s until the last log is finished. Not collective: for a run that failed."""
        if self._writer is not None:
            self._writer.wait(_SETTLE_SECONDS)

    def _write_trace(self, traced: Traced) -> None:
        if traced is None:
            return
        path = self.checkpoint.folder / f"trace-{self._run}-{self._group.rank:05}.parquet"
        try:
            write_trace(path, traced, self._graph)
        except (OSError, ValueError, TypeError) as error:  # pyarrow's are among these
            self._warn(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")

    def _finish(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        problems = [p for p in self._group.all_gather(writer.part_written()) if p]
        problem = writer.end(gives_up=bool(problems))
        problem = self._group.broadcast(problems[0] if problems else problem)
        if problem:
            self._warn(f"the log {writer.folder.name} is not whole: {problem}")
        elif self._begun is not None:
            self.saves.append(self._begun)

    def find_last(self) -> Path | None:
        """Return the newest log in the folder from which this run can go on. Not collective."""
        mine = {self._run, self._resumed}
        logs = files.find_logs(self.checkpoint.folder)
        return next((path for path in logs if files.run_of(path) in mine), None)

    def _warn(self, problem: str) -> None:
        if self._group.rank == 0:
            log.warning("%s. The run goes on; older logs stay as they are", problem)

    def _arrays(self, snapshot: Snapshot) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "gids": snapshot.gids,
            "status": snapshot.status,
            snapshot.in_flight: snapshot.ends,
        }
        arrays |= zip((f"state.{name}" for name in self._states), snapshot.states, strict=True)
        if self._on_edges:
            arrays["sources"] = snapshot.sources
            arrays |= zip((f"edge.{name}" for name in self._on_edges), snapshot.edges, strict=True)
        arrays |= {f"{snapshot.in_flight}.{i}": values for i, values in enumerate(snapshot.values)}
        if self._graph.ids.table is not None:
            if self._oids is None:
                self._oids = self._graph.ids.to_oids(snapshot.gids)
            arrays["oids"] = self._oids
        return arrays

    def _manifest(
        self, snapshot: Snapshot, arrays: dict[str, NDArray[Any]], stats: Sequence[SuperstepStats]
    ) -> Manifest:
        values = [value.tolist() for value in snapshot.aggregates]
        return Manifest(
            run=self._run,
            superstep=snapshot.superstep,
            program=self._identity.program,
            program_key=self._identity.program_key,
            graph_key=self._identity.graph_key,
            num_vertices=self._graph.num_vertices,
            num_edges=self._graph.num_edges,
            id_kind=self._graph.ids.kind,
            id_base=self._graph.ids.base,
            device=self._device,
            in_flight=snapshot.in_flight,
            states=self._states,
            optional=self._optional,
            aggregators=dict(zip(self._aggregators, values, strict=True)),
            dtypes={name: files.dtype_text(array) for name, array in arrays.items()},
            stats=[list(astuple(record)) for record in stats] if self._group.rank == 0 else [],
            versions={"sigps": __version__, "numpy": np.__version__, "python": platform.python_version()},
            saved_at=time.time(),
        )


def _next_run(folder: Path) -> str:
    """Return a new run's name. Names ascend from run to run, even where the clock was set back.

    A name that is a day ahead or more is no run's of a clock that goes right, and none is made to follow it.
    """
    now = datetime.datetime.now(datetime.UTC)
    for path in files.find_logs(folder):
        try:
            last = datetime.datetime.strptime(path.name[:16], _STAMP).replace(tzinfo=datetime.UTC)
        except ValueError:
            last = datetime.datetime.max.replace(tzinfo=datetime.UTC)
        if last - now < _CLOCKS_DIFFER:
            now = max(now, last + datetime.timedelta(seconds=1))
            break
        log.warning("the state log %s has no time of the past in its name: move it away", path)
    return f"{now.strftime(_STAMP)}-{secrets.token_hex(2)}"


_CLOCKS_DIFFER = datetime.timedelta(days=1)
_STAMP = "%Y%m%dT%H%M%SZ"
