"""What `sigps run` prints: load report, superstep table, highest values. Rank 0 writes to standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sigps.account import Line, seconds_text
from sigps.engine.stats import SuperstepStats
from sigps.graph.report import bytes_text
from sigps.job.many_results import Results

__all__ = [
    "account_text",
    "console",
    "runs_table",
    "superstep_table",
    "top_table",
    "trace_text",
]

_SHOWN = 12
_FILE_WIDTH = 160  # in a file or a pipe, no number is cut off


def console(*, rank: int = 0) -> Console:
    """Return where reports go: standard output on rank 0, nowhere on the others."""
    found = Console(quiet=rank != 0, highlight=False, soft_wrap=True)
    if not found.is_terminal:
        found.width = _FILE_WIDTH
    return found


def superstep_table(stats: Sequence[SuperstepStats]) -> Table:
    """Return a row a superstep; of many, the first and the last ones around an ellipsis."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("superstep", "direction", "active", "messages", "moved", "time", "imbalance"):
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
            seconds_text(s.seconds),
            f"{s.imbalance:.2f}",
        )
    return table


def account_text(seconds: Mapping[Line, float]) -> str:
    """Say where the time went, line by line, in the order of the account; no line that took nothing to speak of.

    Example:
        >>> account_text({"import": 0.31, "load": 1.2, "compile": 0.00001, "rest": 0.01})
        'took 1.52 s: import 0.310, load 1.200, rest 0.010'
    """
    lines = ", ".join(f"{line} {spent:.3f}" for line, spent in seconds.items() if spent >= 0.0005)
    return f"took {seconds_text(sum(seconds.values()))}: {lines}"


def runs_table(results: Results) -> Table:
    """Return a row a run: what it was given, how it ended, its aggregators; of many, the first and the last ones."""
    aggregators = [name for name, value in results[0].aggregators.items() if np.ndim(value) == 0]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*results.given[0], "supersteps", "reason", *aggregators):
        table.add_column(escape(name), justify="left" if name == "reason" else "right", no_wrap=True)
    rows = range(len(results))
    for i in [*rows[: _SHOWN // 2], None, *rows[-_SHOWN // 2 :]] if len(rows) > _SHOWN else rows:
        if i is None:
            table.add_row(*["..."] * len(table.columns))
            continue
        ended = (f"{results[i].supersteps:,}", results[i].reason)
        values = (*results.given[i].values(), *ended, *(results[i].aggregators[name] for name in aggregators))
        table.add_row(*(escape(str(value)) for value in values))
    return table


def top_table(field: str, pairs: Sequence[tuple[Any, Any]]) -> Table:
    """Return the ids with the highest values of a field, highest first."""
    title = f"highest {escape(field)}"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("id", justify="right")
    table.add_column(escape(field), justify="right")
    for vertex_id, value in pairs:
        table.add_row(escape(str(vertex_id)), f"{value:.6g}" if isinstance(value, float) else str(value))
    return table


def trace_text(record: Mapping[str, Any]) -> str:
    """Say what one traced vertex did in one superstep."""
    changes = ", ".join(f"{name} {old} -> {record['after'][name]}" for name, old in record["before"].items())
    end = "; halts" if record["halted"] else ""
    return (
        f"superstep {record['superstep']}, vertex {record['id']}: reads {record['messages']}; "
        f"{changes}; sends {record['sent']}{end}"
    )
