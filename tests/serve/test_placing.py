"""Which GPU a job gets: the table of the policies, and what they come to on the 24 pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared_gpus import PAIRS, arrivals, place_all

from sigps.errors import ConfigError
from sigps.serve.placing import Demand, GpuLoad, choose_gpu

BUSY = Demand(0.9, 0.2)
STREAM = Demand(0.2, 0.9)
POOL = [
    GpuLoad(50, 1.0, 9.0, ("stream",)),
    GpuLoad(70, 0.5, 3.0, ("busy",)),
    GpuLoad(60, 1.0, 5.0, ("busy",)),
]
KNOWN = {"stream": STREAM, "busy": BUSY}


@pytest.mark.parametrize(
    ("policy", "program", "num_bytes", "last", "chosen"),
    [
        ("round_robin", "busy", 10, -1, 0),
        ("round_robin", "busy", 10, 0, 1),
        ("round_robin", "busy", 10, 2, 0),
        ("round_robin", "busy", 55, 2, 1),  # the first has too little memory
        ("least_memory", "busy", 10, 0, 1),
        ("weighted_times", "busy", 10, 0, 2),  # (5 + 2) / 1 is before (3 + 2) / 0.5 and (9 + 2) / 1
        ("feedback", "busy", 10, 0, 0),  # beside what streams
        ("feedback", "stream", 10, 0, 2),  # beside what computes, where that is fast
        ("feedback", "busy", 65, 0, 1),
        ("feedback", "busy", 71, 0, None),
        ("round_robin", "busy", 71, 0, None),
    ],
)
def test_the_table(policy: Any, program: str, num_bytes: int, last: int, chosen: int | None) -> None:
    found = choose_gpu(
        policy, POOL, program=program, num_bytes=num_bytes, seconds=2.0, last=last, history=KNOWN
    )
    assert found == chosen


def test_a_program_never_seen_counts_as_a_whole_gpu() -> None:
    pool = [GpuLoad(9, 1.0, 1.0, ("new",)), GpuLoad(9, 1.0, 9.0, ("busy",))]
    assert choose_gpu("feedback", pool, program="stream", num_bytes=1, seconds=1.0, history=KNOWN) == 1


def test_an_unknown_policy_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'least_memry' is not one of"):
        choose_gpu("least_memry", POOL, program="busy", num_bytes=99, seconds=1.0)  # type: ignore[arg-type]


def test_feedback_is_better_than_least_memory_than_round_robin_on_the_pairs() -> None:
    means = []
    for policy in ("round_robin", "least_memory", "feedback"):
        runs = [
            place_all(policy, arrivals(pair, 4, 200, n), (1.0, 1.0, 0.5, 0.5)) for n, pair in enumerate(PAIRS)
        ]  # type: ignore[arg-type]
        means.append(np.mean([np.mean(run) for run in runs]))
    assert means[0] < means[1] < means[2]
