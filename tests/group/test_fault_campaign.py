"""A few of the faults of `fault_campaign`, which plants hundreds by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_campaign import Campaign, Plant

PLANTS = [
    Plant("SIGSTOP", 2, "loading the graph", 2),
    Plant("SIGSEGV", 0, "replace", 4),
]


GATHERED = [
    Plant("SIGKILL", 1, "collecting the result", 2),
]


@pytest.mark.slow
@pytest.mark.mpi
def test_faults_are_named_where_rank_0_gathers_the_whole_result(mpirun: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, mpirun, gathers=True)
    assert {plant: campaign.judge(number, plant) for number, plant in enumerate(GATHERED)} == {
        plant: [] for plant in GATHERED
    }


@pytest.mark.slow
@pytest.mark.mpi
def test_planted_faults_end_the_job_are_named_and_leave_nothing(mpirun: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, mpirun)
    assert {plant: campaign.judge(number, plant) for number, plant in enumerate(PLANTS)} == {
        plant: [] for plant in PLANTS
    }
