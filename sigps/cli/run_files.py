"""The files that `sigps run` writes about a run, beside its result."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sigps.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.graph import Graph
    from sigps.job.config import JobConfig
    from sigps.job.result import Result

__all__ = ["RunFiles"]


@dataclass(frozen=True)
class RunFiles:
    """Where they are written, relative to the current folder; None where one is not wanted.

    Attributes:
        report: The page about the run.
    """

    report: str | None = None

    @property
    def words(self) -> list[str]:
        """The options of `sigps run` that ask for the same."""
        return [word for option, path in self._wanted().items() for word in (option, path)]

    def _wanted(self) -> dict[str, str]:
        return {option: path for option, path in (("--report", self.report),) if path is not None}

    def check(self, job: JobConfig) -> None:
        """Check what can be checked before the graph is read.

        Raises:
            ConfigError: If the job is several runs, a folder is missing, or a package is.
        """
        for option, path in self._wanted().items():
            if job.many is not None:
                raise ConfigError(f"{option} is about one run, and {job.name} asks for several (many)")
            if not Path(path).resolve().parent.is_dir():
                raise ConfigError(f"{option} {path}: there is no folder {Path(path).parent}: make it first")
        if self.report is not None:
            from sigps.report.page import check_packages

            check_packages()

    def write(self, job: JobConfig, result: Result, graph: Graph, out: Console) -> None:
        """Write them on rank 0. Collective."""
        if self.report is None:
            return
        from sigps.account import spent_since
        from sigps.job.result import highest_of_ranks
        from sigps.report.figures import degrees_of
        from sigps.report.page import make_report

        group = graph.group
        fields = [name for name in result.fields if result[name].ndim == 1]  # vectors have no order
        highest = {name: highest_of_ranks(result, name, job.output.top, group) for name in fields}
        degrees = degrees_of(graph)
        result.account = spent_since()
        if group.rank != 0 or result.record is None:
            return
        started = ["mpirun", "-n", str(group.size)] if group.size > 1 else []
        command = shlex.join([*started, "sigps", *sys.argv[1:]])
        page = make_report(result, result.record, highest=highest, degrees=degrees, command=command)
        page.save(self.report)
        out.print(f"wrote {self.report}", markup=False)
