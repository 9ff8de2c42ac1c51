"""A run as a file of Prometheus's text format, for the textfile collector of its node exporter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sigps.engine.stats import SuperstepStats
from sigps.errors import OutputError
from sigps.extras import needs
from sigps.report.record import Finished, RunRecord

__all__ = ["Metrics", "check_metrics_package"]

_SECONDS_BETWEEN_FILES = 5.0


class Metrics:
    """The file of one run: written now and then while it runs, by `observe`, and when it has ended, by `finish`.

    A file replaces the older one when it is whole, as a collector that reads at any time needs it.

    Args:
        path: The file; collectors take names that end in `.prom`.
        program: The name of the program, a label of all metrics.

    Raises:
        ConfigError: If prometheus-client is missing.
    """

    def __init__(self, path: str | Path, program: str) -> None:
        check_metrics_package()
        self._path, self._program = Path(path), program
        self._sums = dict.fromkeys(("supersteps", "messages", "moved_bytes", "superstep_seconds"), 0.0)
        self._written_at = 0.0

    def observe(self, stats: Sequence[SuperstepStats]) -> None:
        """Take the supersteps so far, for `sigps.run(progress=)`; writes the file at most every five seconds."""
        self._add(stats)
        if stats and time.monotonic() - self._written_at >= _SECONDS_BETWEEN_FILES:
            self._write(self._registry(stats, running=True))

    def finish(self, result: Finished, record: RunRecord) -> None:
        """Write what the run came to.

        Raises:
            OutputError: If the file cannot be written.
        """
        self._add(result.stats)
        registry = self._registry(result.stats, running=False)
        phases = _gauge(registry, "phase_seconds", "Seconds of rank 0 by phase.", "program", "phase")
        for line, seconds in result.account.items():
            phases.labels(self._program, line).set(seconds)
        ended = _gauge(registry, "ended", "1 for why and where the run ended.", "program", "reason", "device")
        ended.labels(self._program, result.reason, result.device).set(1)
        for name, count in (("vertices", record.size.num_vertices), ("edges", record.size.num_edges)):
            about = f"Of the graph as the program took it: {name}."
            _gauge(registry, f"graph_{name}", about, "program").labels(self._program).set(count)
        peak = _gauge(registry, "peak_bytes", "The most host memory of a rank's process.", "program", "rank")
        for number, rank in enumerate(record.ranks):
            peak.labels(self._program, str(number)).set(rank.peak_bytes)
        self._write(registry)

    def _add(self, stats: Sequence[SuperstepStats]) -> None:
        for s in stats[int(self._sums["supersteps"]) :]:
            self._sums["supersteps"] += 1
            self._sums["messages"] += s.messages
            self._sums["moved_bytes"] += s.bytes_moved
            self._sums["superstep_seconds"] += s.seconds

    def _registry(self, stats: Sequence[SuperstepStats], *, running: bool) -> Any:
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        about = {
            "supersteps": (self._sums["supersteps"], "Supersteps that ran."),
            "messages": (self._sums["messages"], "Messages that were sent."),
            "moved_bytes": (self._sums["moved_bytes"], "Bytes that crossed between ranks."),
            "superstep_seconds": (self._sums["superstep_seconds"], "Seconds in supersteps, on rank 0."),
            "active_vertices": (stats[-1].active if stats else 0, "Vertices that ran in the last superstep."),
            "running": (int(running), "Whether the run was going on when this was written."),
            "written_timestamp_seconds": (time.time(), "When this was written, in seconds since 1970."),
        }
        for name, (value, text) in about.items():
            _gauge(registry, name, text, "program").labels(self._program).set(value)
        return registry

    def _write(self, registry: Any) -> None:
        from prometheus_client import write_to_textfile

        try:
            write_to_textfile(str(self._path), registry)
        except OSError as error:
            raise OutputError(f"{self._path} cannot be written: {error.strerror or error}") from None
        self._written_at = time.monotonic()


def check_metrics_package() -> None:
    """Check that prometheus-client is here.

    Raises:
        ConfigError: If it is missing; it names the extra.
    """
    with needs("prometheus-client", "metrics"):
        import prometheus_client  # noqa: F401


def _gauge(registry: Any, name: str, about: str, *labels: str) -> Any:
    from prometheus_client import Gauge

    return Gauge(f"sigps_{name}", about, labels, registry=registry)
