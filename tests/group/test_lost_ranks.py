"""Jobs in which a rank stops or hangs: they end by themselves, name the rank and the log to go on from, and do go on.

Every command has a time limit, so that what hangs fails.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from processes import end_of
from relaunched_job import JOB, start

from sigps import ConfigError, Faults, Graph, run
from sigps.apps import WCC

pytestmark = pytest.mark.mpi

PROGRAM = """
import os
import signal
from pathlib import Path

from sigps import Param, State, Vertex


class Echo(Vertex, message=int):
    '''Sums its messages; once, the process that has vertex 40 stops, or computes for ever.'''

    way: Param[str] = ""
    seen: State[int] = 0

    def compute(self, messages):
        for message in messages:
            self.seen += message
        if self.id == 40 and self.superstep == 7 and self.way and not Path("went-wrong").exists():
            Path("went-wrong").touch()
            if self.way == "stops":
                os.kill(os.getpid(), signal.SIGSTOP)
            while self.way == "hangs":
                pass
            raise ValueError("vertex 40 has had enough")
        if self.superstep < 12:
            self.send_to_neighbors(self.seen % 97 + 1)
        self.vote_to_halt()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB + "faults: {silent_seconds: 3, superstep_seconds: 6}\n")
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The rows of a run in which nothing goes wrong."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "job.yaml").write_text(JOB)
    ended = end_of(start(folder, "-o", "whole.csv"))
    assert ended.code == 0, ended.err
    return sorted((folder / "whole.csv").read_text().splitlines()[1:])


def test_a_lost_rank_is_named_and_ends_the_run(folder: Path, mpirun: str) -> None:
    ended = end_of(start(folder, "--set", "params.way=stops", under=(mpirun, "-n", "3")))
    assert ended.code != 0
    assert re.search(r"rank \d on host \S+ is stopped in superstep 7", ended.err), ended.err
    last = r"The last log is \S+-0000000[36]: continue with --resume"  # 6 is written while superstep 7 runs
    assert re.search(last, ended.err), ended.err
    assert len(re.findall(r" on host ", ended.err)) == 1


@pytest.mark.parametrize(
    ("way", "complaint"),
    [("hangs", r"rank \d on host \S+ hangs in superstep 7"), ("raises", "vertex 40 has had enough")],
)
def test_a_run_with_retries_goes_on(
    folder: Path, mpirun: str, way: str, complaint: str, undisturbed: list[str]
) -> None:
    ended = end_of(
        start(folder, "--ranks", 3, "--retries", 1, "--set", f"params.way={way}", "-o", "parts.csv")
    )
    assert ended.code == 0, ended.err
    assert re.search(complaint, ended.err), ended.err
    assert "attempt 2 of 2 goes on from" in ended.err
    parts = sorted(
        line for part in (folder / "parts.csv").glob("part-*") for line in part.read_text().splitlines()[1:]
    )
    assert parts == undisturbed


@pytest.mark.parametrize("wrong", [0, -1.0, True, "3"])
def test_a_limit_is_a_number_above_0(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"silent_seconds=.* must be a number above 0"):
        Faults(silent_seconds=wrong)  # type: ignore[arg-type]


def test_faults_are_a_sigps_faults() -> None:
    with pytest.raises(ConfigError, match=r"must be a sigps\.Faults"):
        run(WCC(), Graph.from_edges([0], [1]), faults=3.0)  # type: ignore[arg-type]
