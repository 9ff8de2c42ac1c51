"""Every failure that sigps raises on purpose, on one page.

    SigpsError
    ├── ConfigError      a job, an option or a parameter is wrong; nothing was loaded
    ├── GraphError       a file, an id or an edge is wrong
    ├── PartitionError   a graph cannot be partitioned as requested
    ├── CompileError     compute() cannot be compiled: file, line, source text
    ├── ComputeError     arithmetic of compute() has no result: vertex, superstep, file, line
    ├── DeviceError      a device lacks what the run needs: rank
    │   └── KernelError  kernels cannot be compiled for it, or linked
    ├── ExchangeError    ranks could not exchange messages: rank, superstep
    ├── StateLogError    a state log is missing, damaged, or of another job
    ├── OutputError      a result could not be written, or is not whole
    └── ServerError      a server of jobs has ended, or does not answer as one

A message says what was wrong, the value, the rule, and the next step.
"""

from __future__ import annotations

import difflib
import linecache
import os
import traceback
from collections.abc import Iterable

__all__ = [
    "CompileError",
    "ComputeError",
    "ConfigError",
    "DeviceError",
    "ExchangeError",
    "GraphError",
    "KernelError",
    "OutputError",
    "PartitionError",
    "ServerError",
    "SigpsError",
    "StateLogError",
    "nearest",
]


_PACKAGE = os.path.dirname(__file__)
_SCREEN = 1600


def nearest(word: object, known: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` for a message, or a full stop where no known word is near."""
    names = list(known)
    meant = {"gpu": "cuda"}.get(str(word).lower())
    close = [meant] if meant in names else difflib.get_close_matches(str(word), names, n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


class SigpsError(Exception):
    """The root of all errors that sigps raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the user's lines on the way to the error, and the message; none of ours."""
        frames = traceback.extract_tb(self.__traceback__)
        users = [f for f in frames if not f.filename.startswith(_PACKAGE) and "IPython" not in f.filename]
        lines = [f"  {frame.filename}:{frame.lineno}: {frame.line}" for frame in users]
        return [*lines, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", [])]


class ConfigError(SigpsError):
    """A job file, an option or a parameter is wrong. Raised before any graph is read."""


class GraphError(SigpsError):
    """A graph file, a vertex id or an edge is wrong. What a file holds may be long: the message is a screen at most."""

    def __init__(self, problem: str) -> None:
        is_long = len(problem) > _SCREEN
        super().__init__(f"{problem[: _SCREEN // 2]} ... {problem[-_SCREEN // 2 :]}" if is_long else problem)


class PartitionError(SigpsError):
    """A graph cannot be partitioned as requested."""


class CompileError(SigpsError):
    """A vertex program uses something that cannot be compiled.

    Attributes:
        problem: What cannot be compiled, and what to write instead.
        file: The file of the class, or None if its source is not available.
        line: The line in that file, counted from 1, or None.
        source: The text of that line, stripped.
    """

    def __init__(
        self, problem: str, *, file: str | None = None, line: int | None = None, source: str = ""
    ) -> None:
        where = f"{file}:{line}: " if file is not None and line is not None else ""
        text = f"\n    {source}" if source else ""
        super().__init__(f"{where}{problem}{text}")
        self.problem = problem
        self.file = file
        self.line = line
        self.source = source


class ComputeError(SigpsError):
    """Arithmetic of compute() has no result: a whole number beyond its type, or a division by zero.

    Attributes:
        superstep: The superstep in which it happened.
        file: The file in which that is written.
        line: The line in that file, counted from 1.
        source: The text of that line, stripped.
    """

    def __init__(self, problem: str, *, who: str, superstep: int, file: str, line: int) -> None:
        self.superstep, self.file, self.line = superstep, file, line
        self.source = linecache.getline(file, line).strip()
        super().__init__(f"{file}:{line}: {problem}, in {who}, superstep {superstep}\n    {self.source}")


class DeviceError(SigpsError):
    """A device is missing or lacks what the run needs.

    Attributes:
        rank: The rank whose device it is, counted from 0.
    """

    def __init__(self, problem: str, *, rank: int = 0) -> None:
        super().__init__(f"rank {rank}: {problem}")
        self.rank = rank


class KernelError(DeviceError):
    """Kernels cannot be compiled or linked for a device; holds the messages of the compiler or linker."""


class ExchangeError(SigpsError):
    """Messages could not be delivered.

    Attributes:
        rank: The rank that detected the failure, counted from 0.
        superstep: The superstep in which it happened.
    """

    def __init__(self, problem: str, *, rank: int, superstep: int) -> None:
        super().__init__(f"rank {rank}, superstep {superstep}: {problem}")
        self.rank = rank
        self.superstep = superstep


class StateLogError(SigpsError):
    """A state log is missing, damaged, or was written by another job or of another graph."""


class OutputError(SigpsError):
    """A result could not be written, as where the disk is full, or one that is read is not whole."""


class ServerError(SigpsError):
    """A server of jobs has ended, was started anew, or does not answer as one; or a process of own code died."""
