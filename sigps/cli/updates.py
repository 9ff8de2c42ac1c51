"""`sigps run` of a job with `updates`: a result that follows its graph, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.group import Group
    from sigps.job.config import JobConfig, UpdatesSection
    from sigps.job.result import Result
    from sigps.job.stream import LiveResult
    from sigps.job.stream_log import StreamLog
    from sigps.model.vertex import Vertex

__all__ = ["run_updates"]

T = TypeVar("T")


def run_updates(job: JobConfig, program: Vertex, group: Group, out: Console, *, resume: bool) -> Result:
    """Run a job's program on its graph, and after each batch of its updates; return the last result. Collective.

    All ranks read all updates, and each applies those of its rows.

    Raises:
        StateLogError: If the logs are another job's.
    """
    from sigps.cli.checks import load_graph
    from sigps.job.stream import stream
    from sigps.job.updates import read_updates

    updates = job.updates
    assert updates is not None
    log = _log_of(job, group, anew=not resume)
    found = log.newest() if log is not None and resume else None
    done, graph, window = found if found is not None else (0, load_graph(job, group), None)
    out.print(
        str(graph.report)
        if not done
        else f"goes on after batch {done:,}: {graph!r}".replace("<", "").replace(">", ""),
        markup=False,
    )
    options = {**job.engine.model_dump(exclude={"trace"}), "partitioner": job.partition.method}
    live = stream(
        program,
        graph,
        guard=updates.guard,
        window=updates.window_length,
        missing=updates.missing,
        tolerance=updates.tolerance,
        **options,
    )
    with live:
        if window is not None:
            live.window_state = window
        batches = read_updates(
            updates.path, every=updates.batch, columns=updates.columns, directed=graph.directed, skip=done
        )
        saved_at = time.monotonic()
        for number, batch in enumerate(_ahead(batches), done + 1):
            began = time.perf_counter()
            result = live.apply(batch)
            _say(number, result, time.perf_counter() - began, out)
            if updates.output_every and number % updates.output_every == 0 and job.output.path is not None:
                path = _numbered(Path(job.output.path), number)
                result.write(path, job.output.fields)
                out.print(f"wrote {path}", markup=False)
            if log is not None and group.broadcast(_is_due(job, number, saved_at)):
                out.print(f"wrote {log.save(number, live.graph, live.window_state)}", markup=False)
                saved_at = time.monotonic()
        return live.result


def _log_of(job: JobConfig, group: Group, *, anew: bool) -> StreamLog | None:
    from sigps.job.stream_log import StreamLog

    if job.checkpoint is None or job.updates is None:
        return None
    updates: UpdatesSection = job.updates
    identity = {
        "program": job.program,
        "params": {name: repr(value) for name, value in sorted(job.params.items())},
        "graph": job.graph.model_dump(mode="json"),
        "updates": [updates.path, updates.batch, updates.columns],
        "window": updates.window_length,
        "tolerance": updates.tolerance,
    }
    return StreamLog(Path(job.checkpoint.dir), identity, job.checkpoint.keep, group, anew=anew)


def _is_due(job: JobConfig, number: int, saved_at: float) -> bool:
    when = job.checkpoint
    assert when is not None
    by_count = when.every is not None and number % when.every == 0
    return by_count or (when.seconds is not None and time.monotonic() - saved_at >= when.seconds)


def _say(number: int, result: LiveResult, seconds: float, out: Console) -> None:
    update: Any = result.update
    missing = f", {update.missing:,} missing" if update.missing else ""
    why = f" ({result.why})" if result.path == "full" else ""
    out.print(
        f"batch {number:,}: {update.inserted:,} inserted, {update.deleted:,} deleted{missing}; {result.path} run{why}, "
        f"{result.changed_ids.size:,} vertices changed, {1000 * seconds:.1f} ms",
        markup=False,
    )


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number:06d}{path.suffix}")


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, of which the next is read while one is worked on."""
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="sigps-updates") as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item  # type: ignore[misc]
