"""A line about a run while it runs: in a terminal or a notebook."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from sigps.account import seconds_text
from sigps.engine.stats import SuperstepStats

__all__ = ["OnProgress", "is_notebook", "live_progress", "live_wait", "progress_text"]

OnProgress = Callable[[Sequence[SuperstepStats]], None]
"""What `sigps.run(progress=)` calls, on rank 0, with all statistics so far."""


@contextlib.contextmanager
def live_progress(max_supersteps: int | None = None, *, rank: int = 0) -> Iterator[OnProgress | None]:
    """Show one line about the superstep that ended last, while the block runs; it vanishes afterwards.

    It has the rates of supersteps and messages since the line before and, where the run ends at `max_supersteps` at the
    latest, how many supersteps are left and how long they take at that rate.

    Yields a function for `sigps.run(progress=)`; None off rank 0 and where standard error is neither a terminal nor a
    notebook's, so that the engine runs without pauses for reports.
    """
    if rank != 0:
        yield None
    elif is_notebook():
        with _in_notebook(max_supersteps) as show:
            yield show
    else:
        with _in_terminal(max_supersteps) as show:
            yield show


@contextlib.contextmanager
def live_wait(what: str, *, rank: int = 0) -> Iterator[None]:
    """Show in a terminal what is done, and for how long already, while the block runs; it vanishes afterwards.

    Nothing is shown off rank 0, and where standard error is no terminal.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    stderr = Console(stderr=True)
    if rank != 0 or not stderr.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as line:
        line.add_task(escape(what), total=None)
        yield


def progress_text(
    stats: Sequence[SuperstepStats], num_new: int, seconds: float, max_supersteps: int | None = None
) -> str:
    """Say how far a run is.

    Args:
        stats: All supersteps so far, at least one.
        num_new: How many of them ran in the last `seconds`.
        seconds: A time on the wall clock.
        max_supersteps: Where the run ends at the latest.

    >>> steps = [SuperstepStats(s, "pull", 10, 500, 0, 0.1, 1.0) for s in range(4)]
    >>> progress_text(steps, 2, 0.5, max_supersteps=10)
    'superstep 3: 10 active, 500 messages; 4/s, 2,000 messages/s; at most 6 left, 1.50 s'
    """
    last = stats[-1]
    text = f"superstep {last.superstep:,}: {last.active:,} active, {last.messages:,} messages"
    if not num_new or seconds <= 0:
        return text
    messages = sum(s.messages for s in stats[len(stats) - num_new :])
    text += f"; {num_new / seconds:,.3g}/s, {messages / seconds:,.0f} messages/s"
    if max_supersteps is not None:
        left = max_supersteps - len(stats)
        text += f"; at most {left:,} left, {seconds_text(left * seconds / num_new)}"
    return text


class _Line:
    """What is shown: called with statistics, it passes their text on."""

    def __init__(self, max_supersteps: int | None, show: Callable[[str, int], None]) -> None:
        self._limit, self._show = max_supersteps, show
        self._seen, self._since = 0, time.perf_counter()

    def __call__(self, stats: Sequence[SuperstepStats]) -> None:
        if not stats:
            return
        now = time.perf_counter()
        text = progress_text(stats, len(stats) - self._seen, now - self._since, self._limit)
        self._seen, self._since = len(stats), now
        self._show(text, len(stats))


@contextlib.contextmanager
def _in_terminal(max_supersteps: int | None) -> Iterator[OnProgress | None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task("superstep 0", total=max_supersteps)
        yield _Line(max_supersteps, lambda text, done: bar.update(task, description=text, completed=done))


@contextlib.contextmanager
def _in_notebook(max_supersteps: int | None) -> Iterator[OnProgress]:
    """Show it in the cell's output, by the kernel alone: no widgets are needed."""
    from IPython.display import HTML, display

    shown = display(HTML("superstep 0"), display_id=True)

    def show(text: str, done: int) -> None:
        bar = f'<progress value="{done}" max="{max_supersteps}"></progress> ' if max_supersteps else ""
        shown.update(HTML(f"{bar}{html.escape(text)}"))

    try:
        yield _Line(max_supersteps, show)
    finally:
        shown.update(HTML(""))


def is_notebook() -> bool:
    """Tell whether a notebook's kernel runs this; imports nothing that is not there."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
