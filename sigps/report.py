"""What a person at a terminal reads of a run: load report, progress line, superstep table, highest values.

Rank 0 writes to standard output; the progress line goes to standard error and only to a terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sigps.result import SuperstepStats

__all__ = ["bytes_text", "console", "progress_line", "superstep_table", "top_table"]

_SHOWN = 12
_FILE_WIDTH = 160  # in a file or a pipe, no number is cut off


def console(*, rank: int = 0) -> Console:
    """Return where reports go: standard output on rank 0, nowhere on the others."""
    found = Console(quiet=rank != 0, highlight=False, soft_wrap=True)
    if not found.is_terminal:
        found.width = _FILE_WIDTH
    return found


@contextlib.contextmanager
def progress_line(max_supersteps: int | None = None, *, rank: int = 0) -> Iterator[Callable[[Any], None]]:
    """Show one line about the superstep that ended last, while the block runs; it vanishes afterwards.

    Yields a function for `sigps.run(progress=)`. Silent off rank 0 and where standard error is no terminal.
    """
    stderr = Console(stderr=True)
    if rank != 0 or not stderr.is_terminal:
        yield lambda stats: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as progress:
        task = progress.add_task("superstep 0", total=max_supersteps)

        def show(stats: SuperstepStats) -> None:
            text = f"superstep {stats.superstep}: {stats.active:,} active, {stats.messages:,} messages"
            progress.update(task, description=text, completed=stats.superstep + 1)

        yield show


def superstep_table(stats: Sequence[SuperstepStats]) -> Table:
    """Return a row a superstep; of many, the first and the last ones around an ellipsis."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("superstep", "direction", "active", "messages", "moved", "seconds", "imbalance"):
        table.add_column(name, justify="left" if name == "direction" else "right", no_wrap=True)
    is_long = len(stats) > _SHOWN
    shown = [*stats[: _SHOWN // 2], None, *stats[-_SHOWN // 2 :]] if is_long else [*stats]
    for s in shown:
        if s is None:
            table.add_row(*["..."] * 7)
            continue
        table.add_row(
            str(s.superstep),
            s.direction,
            f"{s.active:,}",
            f"{s.messages:,}",
            bytes_text(s.bytes_moved),
            f"{s.seconds:.4f}",
            f"{s.imbalance:.2f}",
        )
    return table


def top_table(field: str, pairs: Sequence[tuple[Any, Any]]) -> Table:
    """Return the ids with the highest values of a field, highest first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", justify="right")
    table.add_column(escape(field), justify="right")
    for vertex_id, value in pairs:
        table.add_row(escape(str(vertex_id)), f"{value:.6g}" if isinstance(value, float) else str(value))
    return table


def bytes_text(num_bytes: float) -> str:
    """Say a number of bytes for people.

    Example:
        >>> bytes_text(5_000_000)
        '4.8 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if num_bytes < 1024 or unit == "TiB":
            break
        num_bytes /= 1024
    return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
