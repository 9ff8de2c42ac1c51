"""What a pool shows of itself: plain numbers, and a table of jobs that a notebook shows while they run."""

from __future__ import annotations

import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from sigps.graph.card import head_table
from sigps.graph.graph import Graph
from sigps.report.progress import is_notebook
from sigps.serve.dispatcher import Dispatcher
from sigps.serve.job import JobRow
from sigps.serve.overview import DeviceRow, GraphRow, Overview, TenantRow

__all__ = ["overview_of_pool", "show_until", "table_of_jobs"]

_LOOK_SECONDS = 0.25


def overview_of_pool(jobs: Dispatcher, graphs: Mapping[str, Graph], began: float) -> Overview:
    """Return the devices, tenants, graphs and jobs of a pool; the dispatcher's lock is held.

    Args:
        jobs: Its jobs.
        graphs: Those that it keeps.
        began: When it began, in seconds since 1970.
    """
    active = jobs.num_active()
    running: dict[str, float] = defaultdict(float)
    for device in jobs.devices:
        for tenant, seconds in device.running().items():
            running[tenant] += seconds
    devices = [
        DeviceRow(
            device.name,
            sum(device.name in job.devices for job in jobs.running.values()),
            device.leases,
            device.lease_seconds(),
            budget.num_bytes,
            budget.graph_bytes,
            budget.own_bytes,
        )
        for device, budget in zip(jobs.devices, jobs.budgets, strict=True)
    ]
    tenants = [
        TenantRow(
            name,
            tenant.weight,
            tenant.lease_seconds + running[name],
            active[name],
            *(tenant.ended[state] for state in ("done", "failed", "cancelled")),
        )
        for name, tenant in sorted(jobs.tenants.items())
    ]
    rows = [GraphRow(name, g.num_vertices, g.num_edges) for name, g in graphs.items()]
    return Overview(began, time.time(), devices, tenants, rows, jobs.rows())


def table_of_jobs(jobs: Sequence[JobRow]) -> str:
    """Return the table as HTML."""
    head = (
        "job",
        "program",
        "graph",
        "tenant",
        "priority",
        "state",
        "supersteps",
        "seconds",
        "device",
        "joined",
        "why",
    )
    rows = [
        (
            *(row.number, row.program, row.graph, row.tenant, row.priority, row.state),
            *(row.supersteps, row.lease_seconds, row.device or "", row.joined or "", row.why),
        )
        for row in jobs
    ]
    return head_table(head, rows)


def show_until(make: Callable[[], str], is_over: Callable[[], bool], seconds: float | None) -> None:
    """Show HTML in a notebook, anew where it changes, until something is over; outside a notebook only wait.

    Args:
        make: Returns the HTML.
        is_over: Tells whether to end.
        seconds: End after so many seconds; None for no limit.
    """
    show: Callable[[str], None] = lambda _: None  # noqa: E731
    if is_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(make()), display_id=True)
        show = lambda text: shown.update(HTML(text))  # noqa: E731
    end, before = math.inf if seconds is None else time.monotonic() + seconds, ""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            is_last = is_over() or time.monotonic() >= end
            if (text := make()) != before:
                show(text)
                before = text
            if is_last:
                return
            time.sleep(_LOOK_SECONDS)
