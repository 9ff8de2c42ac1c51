"""A pool as a file of Prometheus's text format, for the textfile collector of its node exporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigps.errors import OutputError
from sigps.serve.overview import Overview

__all__ = ["metrics_text", "write_metrics"]


def write_metrics(overview: Overview, path: str | Path) -> None:
    """Write the file; it replaces an older one when it is whole. Needs prometheus-client.

    Raises:
        OutputError: If it cannot be written there.
    """
    from prometheus_client import write_to_textfile

    try:
        write_to_textfile(str(path), _registry(overview))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None


def metrics_text(overview: Overview) -> bytes:
    """Return the same, for a Prometheus that asks."""
    from prometheus_client import generate_latest

    return generate_latest(_registry(overview))


def _registry(overview: Overview) -> Any:
    from prometheus_client import CollectorRegistry

    class Families:
        def collect(self) -> Iterator[Any]:
            return _families(overview)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families())
    return registry


def _families(overview: Overview) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, about: str, value: float) -> Any:
        return GaugeMetricFamily(f"sigps_pool_{name}", about, value=value)

    yield gauge("began_timestamp_seconds", "When the server began, in seconds since 1970.", overview.began)
    yield gauge("written_timestamp_seconds", "When this was written, in seconds since 1970.", overview.at)
    # With those that are suspended.
    jobs = GaugeMetricFamily("sigps_pool_jobs", "Jobs that have not ended.", labels=("tenant", "state"))
    states = Counter(
        (job.tenant, job.state) for job in overview.jobs if job.state not in ("done", "failed", "cancelled")
    )
    for about, count in states.items():
        jobs.add_metric(about, count)
    ended = CounterMetricFamily("sigps_pool_ended_jobs", "Jobs that have ended.", labels=("tenant", "state"))
    leases = CounterMetricFamily(
        "sigps_pool_lease_seconds", "Seconds of leases by tenant.", labels=("tenant",)
    )
    weights = GaugeMetricFamily("sigps_pool_tenant_weight", "Shares of tenants.", labels=("tenant",))
    for tenant in overview.tenants:
        for state in ("done", "failed", "cancelled"):
            ended.add_metric((tenant.name, state), getattr(tenant, state))
        leases.add_metric((tenant.name,), tenant.lease_seconds)
        weights.add_metric((tenant.name,), tenant.weight)
    busy = CounterMetricFamily(
        "sigps_pool_device_busy_seconds", "Seconds in which a device had a lease.", labels=("device",)
    )
    granted = CounterMetricFamily("sigps_pool_device_leases", "Leases of a device.", labels=("device",))
    memory = GaugeMetricFamily(
        "sigps_pool_device_bytes",
        "Bytes that the pool may take of a device, by use.",
        labels=("device", "use"),
    )
    for device in overview.devices:
        busy.add_metric((device.name,), device.lease_seconds)
        granted.add_metric((device.name,), device.leases)
        free = device.num_bytes - device.graph_bytes - device.own_bytes
        for use, value in (("graphs", device.graph_bytes), ("jobs", device.own_bytes), ("free", free)):
            memory.add_metric((device.name, use), value)
    yield from (jobs, ended, leases, weights, busy, granted, memory)
    for what in ("vertices", "edges"):
        sizes = GaugeMetricFamily(f"sigps_pool_graph_{what}", f"Of a graph: {what}.", labels=("graph",))
        for graph in overview.graphs:
            sizes.add_metric((graph.name,), getattr(graph, what))
        yield sizes
    if overview.windows and (fairness := overview.windows[-1].fairness) is not None:
        yield gauge("fairness", "Jain's index of the last window's leases by weight.", fairness)
