"""Ranks under `mpirun` that are lost: they are named, and all end.

Nothing asserts how fast a fault is found; a limit of SECONDS makes what hangs fail.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_script import faults_in, pids, start
from processes import end_of, wait_until_gone

SECONDS = 120


def wait_for(claim: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 100):
        if claim():
            return
        time.sleep(0.01)
    raise AssertionError(f"still not so after {SECONDS} s")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("way", "victim", "text"),
    [
        ("stop", 2, r"rank {} on host \S+ is stopped in superstep 5: for \d+\.\d s"),
        ("hang", 0, r"rank {} on host \S+ hangs in superstep 5: it has computed for \d+\.\d s"),
        ("raise and catch", 2, r"rank {} on host \S+ failed in superstep 5: \d+\.\d s ago, and .*"),
    ],
)
def test_a_lost_rank_is_named_once_and_all_end(
    way: str, victim: int, text: str, mpirun: str, tmp_path: Path
) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, way, victim))
    assert code != 0, err
    assert "after the run" not in out
    (line,) = faults_in(err)
    assert re.fullmatch(text.format(victim) + r"\. The last log is log/4: continue with --resume", line)
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
def test_where_the_rank_that_reports_first_is_lost_too_another_ends_all(mpirun: str, tmp_path: Path) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, "stop", 0, 1))
    assert code != 0, err
    assert "after the run" not in out
    (line,) = faults_in(err)
    assert re.match(r"rank [01] on host \S+ is stopped in superstep 5", line)  # both are
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize(("way", "victim"), [("kill", 0), ("kill", 2), ("lose the watchdog", 2)])
def test_a_killed_rank_ends_all_and_is_named(way: str, victim: int, mpirun: str, tmp_path: Path) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, way, victim))
    assert code != 0
    assert "after the run" not in out
    (line,) = faults_in(err)
    assert re.match(rf"rank {victim} on host \S+ died in superstep [56]\. ", line), line
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize("whom", ["the launcher", "a rank"])
def test_who_was_told_to_end_did_not_die(whom: str, mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, "all wait", 0)
    wait_for(lambda: (tmp_path / "reached").exists())
    (rank,) = tmp_path.glob("rank-1-*")
    os.kill(process.pid if whom == "the launcher" else int(rank.name.split("-")[2]), signal.SIGTERM)
    code, _, err = end_of(process)
    assert code != 0
    (line,) = faults_in(err)
    who = r"\d" if whom == "the launcher" else "1"
    assert re.match(rf"rank {who} on host \S+ was ended by SIGTERM in superstep 5\. ", line), line
    assert "most recent call" not in err
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
def test_ranks_end_with_their_launcher(mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, "lose the launcher", 1)
    assert end_of(process).code != 0
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
def test_a_rank_that_holds_pythons_lock_is_not_lost(mpirun: str, tmp_path: Path) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, "hold the lock", 0, 2))
    assert code == 0, err
    assert out.count("after the run") == 3


@pytest.mark.mpi
def test_nothing_of_killed_ranks_stays_in_shared_memory(mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, "all wait", 1)
    wait_for(lambda: (tmp_path / "reached").exists())
    maps = Path(f"/proc/{pids(tmp_path)[0]}/maps").read_text()
    names = [line.split(maxsplit=5)[5] for line in maps.splitlines() if "/dev/shm/" in line]
    for pid in pids(tmp_path):
        os.kill(pid, signal.SIGKILL)
    assert end_of(process).code != 0
    assert names
    assert all(name.endswith(" (deleted)") for name in names)


@pytest.mark.mpi
def test_an_exception_is_reported_by_its_rank_alone(mpirun: str, tmp_path: Path) -> None:
    code, _, err = end_of(start(mpirun, tmp_path, "raise", 2))
    assert code != 0
    assert err.count("ValueError: five is unwanted") == 1
    assert faults_in(err) == []
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
def test_a_job_that_was_stopped_as_a_whole_goes_on(mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, "all wait", 1)
    try:
        wait_for(lambda: (tmp_path / "reached").exists())
        for sign, seconds in ((signal.SIGSTOP, 4.0), (signal.SIGCONT, 0.0)):
            for pid in pids(tmp_path):
                os.kill(pid, sign)
            time.sleep(seconds)  # longer than the two seconds that a rank may be silent
        code, out, err = end_of(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert code == 0, err
    assert out.count("after the run") == 3
    assert faults_in(err) == []
