"""The files that `sigps run` writes about a run, beside its result."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sigps.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.engine.stats import SuperstepStats
    from sigps.graph import Graph
    from sigps.job.config import JobConfig
    from sigps.job.result import Result
    from sigps.model.vertex import Vertex
    from sigps.report.progress import OnProgress

__all__ = ["RunFiles"]


@dataclass(frozen=True)
class RunFiles:
    """Where they are written, relative to the current folder; None where one is not wanted.

    Attributes:
        report: The page about the run.
        timeline: When what went on, in the trace event format.
        metrics: Prometheus's text format; written while the program runs, too.
    """

    report: str | None = None
    timeline: str | None = None
    metrics: str | None = None

    @property
    def words(self) -> list[str]:
        """The options of `sigps run` that ask for the same."""
        return [word for option, path in self._wanted().items() for word in (option, path)]

    def _wanted(self) -> dict[str, str]:
        return {f"--{name}": path for name, path in asdict(self).items() if path is not None}

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
            if option == "--report" and Path(path).suffix not in (".html", ".htm"):
                raise ConfigError(f"{option} {path}: the page is HTML: give it a name that ends in .html")
        if self.report is not None:
            from sigps.report.page import check_packages

            check_packages()
        if self.metrics is not None:
            from sigps.report.metrics import check_metrics_package

            check_metrics_package()

    def check_program(self, job: JobConfig, program: object) -> None:
        """Refuse what is about one run of a vertex program where the job's program is a function.

        Raises:
            ConfigError: If it is, and a file is asked for.
        """
        from sigps.model.vertex import Vertex

        if not isinstance(program, Vertex) and (wanted := self._wanted()):
            option = next(iter(wanted))
            raise ConfigError(
                f"{option} is about one run of a vertex program, and {job.program} is a function of several"
            )

    @contextlib.contextmanager
    def observing(self, program: Vertex, show: OnProgress | None, rank: int) -> Iterator[OnProgress | None]:
        """Yield what is called with the statistics so far: it shows them, and writes the metrics."""
        if self.metrics is None or rank != 0:
            yield show
            return
        from sigps.report.metrics import Metrics

        metrics = Metrics(self.metrics, type(program).__name__)

        def observe(stats: Sequence[SuperstepStats]) -> None:
            metrics.observe(stats)
            if show is not None:
                show(stats)

        yield observe

    def write(self, job: JobConfig, result: Result, graph: Graph, out: Console) -> None:
        """Write them on rank 0. Collective."""
        from sigps.account import spent_since

        if not self._wanted():
            return
        result.account = spent_since()
        for path, write in (
            (self.report, self._write_report),
            (self.timeline, self._write_timeline),
            (self.metrics, self._write_metrics),
        ):
            if path is not None:
                write(path, job, result, graph)
                out.print(f"wrote {path}", markup=False)

    def _write_report(self, path: str, job: JobConfig, result: Result, graph: Graph) -> None:
        from sigps.job.result import highest_of_ranks
        from sigps.report.figures import degrees_of
        from sigps.report.page import make_report

        group = graph.group
        fields = [name for name in result.fields if result[name].ndim == 1]  # vectors have no order
        highest = {name: highest_of_ranks(result, name, job.output.top, group) for name in fields}
        degrees = degrees_of(graph)
        if group.rank != 0 or result.record is None:
            return
        started = ["mpirun", "-n", str(group.size)] if group.size > 1 else []
        command = shlex.join([*started, "sigps", *sys.argv[1:]])
        make_report(result, result.record, highest=highest, degrees=degrees, command=command).save(path)

    def _write_timeline(self, path: str, job: JobConfig, result: Result, graph: Graph) -> None:
        import platform

        from sigps.account import spans_since
        from sigps.report.timeline import RankSpans, own_spans, timeline, write_timeline

        ranks = [
            RankSpans(*rank) for rank in graph.group.all_gather(own_spans(platform.node(), spans_since()))
        ]
        if graph.group.rank == 0 and result.record is not None:
            write_timeline(path, timeline(ranks, result.stats, result.record.leases))

    def _write_metrics(self, path: str, job: JobConfig, result: Result, graph: Graph) -> None:
        from sigps.report.metrics import Metrics

        if graph.group.rank == 0 and result.record is not None:
            Metrics(path, type(result.record.program).__name__).finish(result, result.record)
