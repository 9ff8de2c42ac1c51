"""The state log of one run: what every rank has between two supersteps, written while the next ones run.

    log = StateLog(checkpoint, identity, graph, program, device)
    log.save(engine.save, stats)     # collective; copies are made, a thread writes them
    log.close()                      # collective; waits for what is being written

A rank's thread writes its part; rank 0's waits until all parts are there, writes the manifest, and removes what is
older than the logs to keep. A log that cannot be written costs a warning, not the run.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import logging
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import SaveStats, SuperstepStats
from sigps.errors import ConfigError
from sigps.graph.fingerprint import fingerprint
from sigps.graph.graph import Graph
from sigps.system import log_files
from sigps.system.log_files import Manifest, part_name
from sigps.system.trace_file import write_trace
from sigps.vertex import Vertex

__all__ = ["Checkpoint", "Identity", "StateLog", "check_folder"]

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 5.0

Traced = list[dict[str, Any]] | None


@dataclass(frozen=True)
class Checkpoint:
    """When a run saves its state, and where: every so many supersteps, seconds, or whichever comes first.

    Args:
        dir: The folder, made if it is not there; all ranks see it under this name.
        every: Supersteps from one log to the next.
        seconds: Seconds from one log to the next, looked at between supersteps.
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
        if self.seconds is not None and not (is_time and self.seconds > 0):
            raise ConfigError(f"checkpoint: seconds={self.seconds!r} must be a number above 0")

    @property
    def folder(self) -> Path:
        return Path(self.dir)


@dataclass(frozen=True)
class Identity:
    """What a run must have in common with a log to go on from it.

    Attributes:
        program: The program's name.
        program_key: A hash of its source, its parameters and the types of its fields.
        graph_key: A hash of the graph.
    """

    program: str
    program_key: str
    graph_key: str

    @classmethod
    def of(cls, program: Vertex, graph: Graph, precision: Any) -> Identity:
        """Return a run's. Collective; O(edges) once a graph.

        Args:
            program: As the user made it: its vertex ids are the user's.
            graph: The graph that it runs on.
            precision: The array type of Python's `float`.
        """
        declared = program.declaration
        parts = [repr(program.params), *_sources(type(program))]
        parts += [f"{f.name} {f.dtype(precision)} {f.default}" for f in (*declared.states, *declared.message)]
        parts += [f"{a.name} {a.kind} {a.identity} {a.start} {a.persistent}" for a in declared.aggregators]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        return cls(type(program).__qualname__, key, fingerprint(graph))


def _sources(cls: type) -> Iterator[str]:
    """Yield what is written in a program's methods; where that cannot be read, what Python made of it."""
    for base in cls.__mro__[: cls.__mro__.index(Vertex)]:
        for name, member in sorted(vars(base).items()):
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(member):
                try:
                    yield inspect.getsource(member)
                except (OSError, TypeError):
                    yield f"{name} {member.__code__.co_code!r} {member.__code__.co_consts!r}"


def check_folder(folder: Path) -> None:
    """Try whether a log can be written to a folder, or that can be made; leaves nothing behind.

    Raises:
        ConfigError: If not.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    probe = there / f".{secrets.token_hex(8)}.tmp"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"checkpoint: cannot write in {there}: {error.strerror}") from None


class StateLog:
    """What one rank of a run writes. Every method is collective.

    Args:
        checkpoint: Where, and how many to keep.
        identity: What the run is.
        graph: The graph, for the vertices' ids.
        program: The program, for the names of its fields.
        device: What runs it.
        last_log: The log that the run goes on from, if any.

    Attributes:
        saves: One record a log.
        last_log: The newest log that is known to be whole.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: Identity,
        graph: Graph,
        program: Vertex,
        device: str,
        last_log: Path | None = None,
    ) -> None:
        self.checkpoint, self._identity, self._graph, self._device = checkpoint, identity, graph, device
        self._states = [f.name for f in program.declaration.states]
        self._aggregators = [a.name for a in program.declaration.aggregators]
        self._group = graph.group
        self._run = self._group.broadcast(_next_run(checkpoint.folder) if self._group.rank == 0 else "")
        self._writer: _Writer | None = None
        self._oids: NDArray[Any] | None = None
        self.saves: list[SaveStats] = []
        self.last_log = last_log

    def save(
        self, snapshot_of: Callable[[], Snapshot], stats: Sequence[SuperstepStats], traced: Traced = None
    ) -> None:
        """Begin to write a log; what was begun before is finished first.

        Args:
            snapshot_of: Copies this rank's part.
            stats: The supersteps so far.
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
                folder.mkdir(parents=True)
            except OSError as error:
                problem = f"cannot make {folder}: {error.strerror}"
        problem = self._group.broadcast(problem)
        num_bytes = sum(array.nbytes for array in arrays.values())
        if problem:
            self._warn(problem)
        else:
            keeper = _Keeper(manifest, self._group.size, self) if self._group.rank == 0 else None
            self._writer = _Writer(folder / part_name(self._group.rank), arrays, keeper)
        mine = np.array([time.perf_counter() - began, num_bytes])
        everyone = np.stack(self._group.all_gather_array(mine))
        self.saves.append(
            SaveStats(snapshot.superstep, float(everyone[:, 0].max()), int(everyone[:, 1].sum()))
        )

    def close(self, traced: Traced = None) -> None:
        """Wait until the last log is whole."""
        self._finish()
        self._write_trace(traced)

    def settle(self) -> None:
        """Let what is being written be finished, as far as this rank can; for a run that failed. Not collective."""
        if self._writer is not None:
            self._writer.wait(_SETTLE_SECONDS)

    def _write_trace(self, traced: Traced) -> None:
        if traced is None:
            return
        path = self.checkpoint.folder / f"trace-{self._run}-{self._group.rank:05}.parquet"
        try:
            write_trace(path, traced, self._graph)
        except OSError as error:
            self._warn(f"{path} cannot be written: {error.strerror or error}")

    def _finish(self) -> None:
        problem, name = "", ""
        if self._writer is not None:
            problem, name = self._writer.part_written(), self._writer.path.parent.name
        problems = [p for p in self._group.all_gather(problem) if p]
        if self._writer is not None:
            problem = self._writer.end(gives_up=bool(problems))
            problems += [problem] if problem else []
        if problems:
            self._warn(f"the log {name} is not whole: {problems[0]}")
        elif self._writer is not None:
            self.last_log = self._writer.path.parent
        self._writer = None

    def _warn(self, problem: str) -> None:
        if self._group.rank == 0:
            log.warning("%s. The run goes on; the log before it stays", problem)

    def _arrays(self, snapshot: Snapshot) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "gids": snapshot.gids,
            "status": snapshot.status,
            "ends": snapshot.ends,
        }
        arrays |= {
            f"state.{name}": values for name, values in zip(self._states, snapshot.states, strict=True)
        }
        arrays |= {f"value.{i}": values for i, values in enumerate(snapshot.values)}
        if self._graph.ids.table is not None:
            if self._oids is None:
                self._oids = self._graph.ids.to_oids(snapshot.gids)
            arrays["oids"] = self._oids
        return arrays

    def _manifest(
        self, snapshot: Snapshot, arrays: dict[str, NDArray[Any]], stats: Sequence[SuperstepStats]
    ) -> Manifest:
        from sigps import __version__

        values = [value.item() for value in snapshot.aggregates]
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
            aggregators=dict(zip(self._aggregators, values, strict=True)),
            dtypes={name: array.dtype.str for name, array in arrays.items()},
            stats=[list(astuple(record)) for record in stats] if self._group.rank == 0 else [],
            versions={"sigps": __version__, "numpy": np.__version__, "python": platform.python_version()},
            saved_at=time.time(),
        )


def _next_run(folder: Path) -> str:
    """Return a run's name: names ascend from run to run, even where the clock went back."""
    now = datetime.datetime.now(datetime.UTC)
    known = [path.name[:16] for path in log_files.find_logs(folder)[:1]]
    for stamp in known:
        last = datetime.datetime.strptime(stamp, _STAMP).replace(tzinfo=datetime.UTC)
        now = max(now, last + datetime.timedelta(seconds=1))
    return f"{now.strftime(_STAMP)}-{secrets.token_hex(2)}"


_STAMP = "%Y%m%dT%H%M%SZ"


class _Writer:
    """Writes one rank's part on a thread; rank 0's, the manifest too."""

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]], keeper: _Keeper | None) -> None:
        self.path = path
        self._arrays, self._keeper = arrays, keeper
        self._problem = ""
        self._part = threading.Thread(target=self._write, name="sigps state log", daemon=True)
        self._part.start()
        self._rest: threading.Thread | None = None
        if keeper is not None:
            self._rest = threading.Thread(target=keeper.run, name="sigps state log", daemon=True)
            self._rest.start()

    def wait(self, seconds: float) -> None:
        """Wait for the threads, but not for ever: other ranks' parts may never come."""
        self._part.join(seconds)
        if self._rest is not None:
            self._rest.join(seconds)

    def part_written(self) -> str:
        """Wait for this rank's part; return what went wrong, or nothing."""
        self._part.join()
        return self._problem

    def end(self, gives_up: bool) -> str:
        """Wait for the manifest, unless a part will never come; return what went wrong, or nothing."""
        if self._keeper is None or self._rest is None:
            return ""
        if gives_up:
            self._keeper.given_up.set()
        self._rest.join()
        return self._keeper.problem

    def _write(self) -> None:
        try:
            log_files.write_part(self.path, self._arrays)
        except OSError as error:
            self._problem = f"{self.path} cannot be written: {error.strerror or error}"
        self._arrays = {}


class _Keeper:
    """Rank 0's last steps of a log: wait for all parts, write the manifest, remove what is too old."""

    def __init__(self, manifest: Manifest, num_parts: int, state_log: StateLog) -> None:
        self._manifest, self._num_parts, self._log = manifest, num_parts, state_log
        self._checkpoint = state_log.checkpoint
        self.given_up = threading.Event()
        self.problem = ""

    def run(self) -> None:
        folder = self._checkpoint.folder / self._manifest.name
        paths = [folder / part_name(rank) for rank in range(self._num_parts)]
        pause = 0.001
        while not all(path.exists() for path in paths):
            if self.given_up.wait(pause):
                log_files.remove_log(folder)
                return
            pause = min(2 * pause, 0.1)
        try:
            parts = [log_files.described(path) for path in paths]
            replace(self._manifest, parts=parts).write(folder)
        except OSError as error:
            self.problem = f"{folder} cannot be finished: {error.strerror or error}"
            return
        self._log.last_log = folder
        for old in log_files.find_logs(self._checkpoint.folder)[self._checkpoint.keep :]:
            log_files.remove_log(old)
        for begun in log_files.find_unfinished(self._checkpoint.folder):
            if begun.name < folder.name:  # left by a run that died
                log_files.remove_log(begun)
