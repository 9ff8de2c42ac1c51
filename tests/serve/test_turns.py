"""Which job has the next lease: the table of the policies, and 48 hours under a fake clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared_gpus import Job, arrivals, jain, share_engines, share_one

from sigps.errors import ConfigError
from sigps.serve.turns import Ready, choose_job, joined

READY = [
    Ready(3, "a", 1.0, charged=4.0, attained=0.5, phase="compute"),
    Ready(5, "b", 4.0, charged=8.0, attained=0.9, phase="copy"),
    Ready(8, "b", 4.0, charged=8.0, attained=0.7, phase="other"),
]
WEIGHTS = {"a": 1.0, "b": 2.0, "c": 4.0}


@pytest.mark.parametrize(
    ("policy", "last", "running", "chosen"),
    [
        ("round_robin", -1, (), 3),
        ("round_robin", 3, (), 5),
        ("round_robin", 8, (), 3),
        ("fair_share", -1, (), 5),  # 8 / 4 is less than 4 / 1
        ("fair_share", 5, (), 8),
        ("fair_share", 8, (), 5),
        ("least_attained", 3, (), 3),
        ("phase", -1, (), 3),
        ("phase", -1, ("compute",), 5),
        ("phase", -1, ("compute", "copy"), 8),
        ("phase", -1, ("compute", "copy", "other"), 3),
    ],
)
def test_the_table(policy: Any, last: int, running: Any, chosen: int) -> None:
    assert choose_job(policy, READY, last=last, running=running) == chosen
    assert choose_job(policy, READY[::-1], last=last, running=running) == chosen
    assert choose_job(policy, [], last=last, running=running) is None


def test_an_unknown_policy_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'fair' is not one of"):
        choose_job("fair", READY)  # type: ignore[arg-type]


def test_a_tenant_that_was_away_brings_no_credit_and_no_debt() -> None:
    assert joined(0.0, 4.0, READY) == 8.0
    assert joined(20.0, 4.0, READY) == 20.0
    assert joined(1.0, 4.0, []) == 1.0


def test_shares_follow_weights_under_overload_in_every_second_though_leases_run_over() -> None:
    jobs = [Job(t, 0.0, 1e9, step) for t, step in (("a", 0.004), ("b", 0.0003), ("c", 0.0015), ("c", 0.02))]
    leases, idle = share_one([(0.0, "fair_share")], jobs, WEIGHTS, quantum=0.002, until=20.0)
    assert idle == 0.0
    for second in range(20):
        had = dict.fromkeys(WEIGHTS, 0.0)
        for when, tenant, seconds in leases:
            had[tenant] += seconds if second <= when < second + 1 else 0.0
        assert jain([had[t] / WEIGHTS[t] for t in WEIGHTS]) >= 0.95


@pytest.mark.parametrize(
    "policies",
    [
        [(0.0, "round_robin")],
        [(0.0, "fair_share")],
        [(0.0, "least_attained")],
        [(0.0, "fair_share"), (50_000.0, "least_attained"), (100_000.0, "round_robin")],
    ],
    ids=lambda policies: "-".join(name for _, name in policies),
)
def test_48_hours_leave_no_job_behind_and_no_device_idle(policies: Any) -> None:
    draw = np.random.default_rng(7)
    hours, count = 48 * 3600.0, 3000
    came = np.sort(draw.uniform(0.0, hours, count))
    work = draw.exponential(0.8 * hours / count, count)
    jobs = [
        Job(str(draw.choice(["a", "b", "c"])), float(t), float(w), float(draw.uniform(0.1, 6.0)))
        for t, w in zip(came, work, strict=True)
    ]
    leases, idle = share_one(policies, jobs, WEIGHTS, quantum=4.0, until=2 * hours)
    ends = max(job.ended for job in jobs)
    assert np.isfinite(ends)
    assert sum(seconds for _, _, seconds in leases) == pytest.approx(work.sum())
    assert idle + work.sum() == pytest.approx(ends)
    waits = [job.longest_wait for job in jobs]
    assert max(waits) < 3600.0


def test_phases_beside_each_other_are_better_than_attained_service_than_turns_where_much_is_copied() -> None:
    coming = [arrivals(pair, 1, 150, 5, load=0.45) for pair in (("PageRank", "BFS"), ("HITS", "WCC"))]
    means = []
    for policy in ("round_robin", "least_attained", "phase"):
        means.append(np.mean([np.mean(share_engines(policy, jobs, copying=1.0)) for jobs in coming]))  # type: ignore[arg-type]
    assert means[0] < means[1] < means[2]


def test_one_job_alone_has_the_device_in_each_phase() -> None:
    assert share_engines("phase", [(3.0, "BFS")], copying=0.5) == pytest.approx([1.0])
    together = share_engines("phase", [(0.0, "BFS"), (0.0, "BFS")], copying=0.5)  # in one phase for a while
    assert all(0.5 < speedup <= 1.0 for speedup in together)
