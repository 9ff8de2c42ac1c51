"""Whose lease is next on a device that is shared, as a table of requests: no run runs, and no clock matters."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from sigps.serve.devices import SharedDevice, Tenant


def run_of(number: int, tenant: str, *, ends_soon: bool = False, graph: str | None = None) -> Any:
    """Return a run of one job whose requests return at once; None: on a graph of its own."""
    job = Mock(number=number, tenant=tenant, priority=0, attained=0.0, attained_at=0, lease_seconds=0.0)
    job.kind = tenant, number if graph is None else graph
    return Mock(
        jobs=(job,),
        is_open=False,
        is_cancelled=False,
        ends_soon=ends_soon,
        awaited=np.zeros(1, np.uint32),
        has_several_devices=False,
    )


def device_of(engine: str, **tenants: Tenant) -> SharedDevice:
    return SharedDevice("a device", engine, 1, 1.0, tenants, threading.RLock())


def test_cores_have_one_lease_at_a_time() -> None:
    device, first, second = device_of("cpu", a=Tenant()), run_of(0, "a"), run_of(1, "a")
    assert device.request(first)
    assert not device.request(second)
    device.give_back(first)
    assert second.granted.release.called


def test_a_gpu_has_the_next_lease_behind_one() -> None:
    device = device_of("cuda", a=Tenant(), b=Tenant())
    first, second, third = run_of(0, "a"), run_of(1, "b"), run_of(2, "a")
    assert device.request(first)
    assert device.request(second)
    assert not device.request(third)
    device.give_back(first)
    assert third.granted.release.called
    assert device.leases == 1


def test_nobody_has_the_second_place_where_the_first_would_be_chosen_again() -> None:
    device = device_of("cuda", a=Tenant(charged=10.0), b=Tenant(weight=4.0))
    behind, ahead = run_of(0, "a"), run_of(1, "b")
    assert device.request(ahead)
    assert not device.request(behind)  # 10 seconds a weight; the other has 0.25 after this lease
    device.leave(ahead)
    assert behind.granted.release.called


def test_one_that_ends_soon_is_not_waited_for() -> None:
    device = device_of("cuda", a=Tenant(charged=10.0), b=Tenant(weight=4.0))
    assert device.request(run_of(1, "b", ends_soon=True))
    assert device.request(run_of(0, "a"))


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_a_lease_ends_early_where_one_is_next_that_ends_soon(engine: str) -> None:
    device = device_of(engine, a=Tenant(), b=Tenant())
    long, short = run_of(0, "a"), run_of(1, "b", ends_soon=True)
    device.request(long)
    assert not long.awaited[0]
    device.request(short)
    assert long.awaited[0]
    assert not short.awaited[0]
    device.request(long)  # its next lease is a whole one
    device.leave(short)
    assert long.granted.release.called
    assert not long.awaited[0]


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_no_lease_ends_early_for_what_is_not_next_or_as_long(engine: str) -> None:
    device = device_of(engine, a=Tenant(), b=Tenant(charged=10.0), c=Tenant())
    first, others = run_of(0, "a"), [run_of(1, "b", ends_soon=True), run_of(2, "c")]
    device.request(first)
    for other in others:  # one whose tenant had more than its share, and one that goes on for long
        device.request(other)
        assert not first.awaited[0]
    for run in (first, *others):
        device.leave(run)
    short = run_of(3, "a", ends_soon=True)
    device.request(short)
    device.request(run_of(4, "c", ends_soon=True))
    assert not short.awaited[0]


def test_jobs_of_a_program_and_graph_end_one_after_another_unless_they_take_long() -> None:
    device, graph = device_of("cpu", a=Tenant()), "kron"
    first, second, third = (run_of(number, "a", graph=graph) for number in range(3))
    other = run_of(3, "a")
    device.request(first)
    for run in (second, third, other):
        assert not device.request(run)
    assert not device.request(first)  # one on another graph is next
    assert other.granted.release.called
    device.leave(other)
    assert first.granted.release.call_count == 2
    assert device.request(first)
    first.jobs[0].lease_seconds = 51.0  # quanta of 1 s
    assert not device.request(first)
    assert second.granted.release.called
    device.leave(second)
    assert third.granted.release.called


def test_two_of_a_program_and_graph_take_turns_on_a_gpu() -> None:
    device, graph = device_of("cuda", a=Tenant()), "kron"
    first, second, third = (run_of(number, "a", graph=graph) for number in range(3))
    device.request(first)
    assert device.request(second)
    assert not device.request(third)
    assert device.request(first)
    assert device.request(second)
    device.leave(first)
    assert third.granted.release.called
