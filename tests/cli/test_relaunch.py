"""Runs that are started by another process: under a launcher, and again when a process of theirs was killed.

Every command has a time limit, so that what hangs fails.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from processes import SECONDS, Outcome, end_of, wait_until_gone
from relaunched_job import JOB, start

from sigps import Checkpoint, ConfigError, Graph, run
from sigps.apps import WCC
from sigps.cli import main as cli
from sigps.cli.relaunch import Ended, command_of, launch_command, relaunch

PROGRAM = """
import os
import resource
import signal
from pathlib import Path

import sigps.job.parts
from sigps import Param, State, Vertex


class Echo(Vertex, message=int):
    '''Sums what it hears; the process that has vertex 40 is killed in some superstep, a few times.'''

    at: Param[int] = 7
    times: Param[int] = 0
    seen: State[int] = 0

    def compute(self, messages):
        for message in messages:
            self.seen += message
        if self.id == 40:
            self.die()
            self.spoil_output()
        if self.superstep < 12:
            self.send_to_neighbors(self.seen % 97 + 1)
        self.vote_to_halt()

    def die(self):
        died = len(list(Path().glob("died-*")))
        if self.superstep == self.at and died < self.times:
            Path(f"died-{died}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def spoil_output(self):
        if Path("lost").exists():  # this rank, when it has written its part
            sigps.job.parts._crc32 = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        if Path("full").exists() and self.superstep == 12:
            Path("full").unlink()
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


class Forever(Vertex):
    seen: State[int] = 0

    def compute(self, messages):
        self.seen += 1
        if self.superstep == 3:
            Path(f"ready-{os.getpid()}").touch()


class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # what is raised in here is printed, and ignored
            pass


class Drops(Forever):
    def compute(self, messages):
        super().compute(messages)
        if self.superstep == 3 and self.id == 40:
            Dropped()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "random.py").write_text("raise ImportError('not the random of Python')")
    return tmp_path


def sigps_run(folder: Path, *arguments: object, under: tuple[str, ...] = ()) -> Outcome:
    return end_of(start(folder, *arguments, under=under))


def killed(times: int) -> list[str]:
    return ["--set", f"params.times={times}"]


def values(path: Path) -> str:
    parts = sorted(path.glob("part-*")) if path.is_dir() else [path]
    rows = [row for part in parts for row in part.read_text().splitlines()[1:]]
    return "\n".join(sorted(rows))


def reported(outcome: Outcome) -> list[str]:
    return [line for line in outcome.err.splitlines() if line.startswith("job.yaml: ")]


def test_a_killed_run_goes_on_to_the_result_of_an_undisturbed_one(folder: Path) -> None:
    assert sigps_run(folder, "-o", "whole.csv", "--set", "checkpoint=null").code == 0
    assert sigps_run(folder, *killed(1)).code == -signal.SIGKILL
    (folder / "died-0").unlink()
    shutil.rmtree(folder / "log")
    outcome = sigps_run(folder, "-o", "again.csv", "--retries", 1, *killed(1))
    assert outcome.code == 0, outcome.err
    assert values(folder / "again.csv") == values(folder / "whole.csv")
    assert outcome.out.count("converged: ") == 1
    (line,) = reported(outcome)
    begin, _, log = line.partition(f" goes on from {folder}/log/")
    assert begin == "job.yaml: attempt 1 ended with code 137 (SIGKILL); attempt 2 of 2"
    name, _, superstep = log.partition(", superstep ")
    assert superstep in ("3", "6")  # that of 6 may have been under way
    assert int(name[-8:]) == int(superstep)


@pytest.mark.mpi
def test_a_killed_rank_costs_an_attempt(folder: Path, mpirun: str) -> None:
    assert sigps_run(folder, "-o", "whole.csv", "--set", "checkpoint=null").code == 0
    outcome = sigps_run(folder, "-o", "again.csv", "--ranks", 2, "--retries", 1, *killed(1))
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (folder / "again.csv").iterdir()) == [
        "_SUCCESS",
        "part-00000.csv",
        "part-00001.csv",
    ]
    assert values(folder / "again.csv") == values(folder / "whole.csv")
    assert "2 ranks" in outcome.out
    (line,) = reported(outcome)
    assert "; attempt 2 of 2 goes on from " in line
    (folder / "died-0").unlink()
    outcome = sigps_run(folder, "--ranks", 2, *killed(1))
    assert outcome.code != 0
    assert reported(outcome) == []


def test_a_full_disk_at_the_end_costs_an_attempt(folder: Path) -> None:
    (folder / "full").touch()
    outcome = sigps_run(folder, "-o", "r.csv", "--retries", 1)
    assert outcome.code == 0, outcome.err
    assert "r.csv cannot be written: File too large. Make room there" in outcome.err
    assert reported(outcome)[0].startswith(
        "job.yaml: attempt 1 ended with code 1; attempt 2 of 2 goes on from"
    )
    assert not list(folder.glob(".*.tmp"))


@pytest.mark.mpi
def test_a_rank_that_is_lost_while_results_are_written_changes_none(folder: Path, mpirun: str) -> None:
    assert sigps_run(folder, "-o", "r.csv", "--ranks", 2, "--set", "params.at=1").code == 0
    before = values(folder / "r.csv"), (folder / "r.csv" / "_SUCCESS").read_text()
    (folder / "lost").touch()
    assert sigps_run(folder, "-o", "r.csv", "--ranks", 2).code != 0
    assert (values(folder / "r.csv"), (folder / "r.csv" / "_SUCCESS").read_text()) == before
    assert list(folder.glob(".r.csv.*.tmp"))
    (folder / "lost").unlink()
    assert sigps_run(folder, "-o", "r.csv", "--resume").code == 0  # on another number of ranks
    assert (folder / "r.csv").is_file()
    assert not list(folder.glob(".r.csv.*.tmp"))


def test_retries_run_out(folder: Path) -> None:
    outcome = sigps_run(folder, "--retries", 2, *killed(9), "--set", "params.at=1")
    assert outcome.code == 128 + signal.SIGKILL
    assert reported(outcome) == [
        "job.yaml: attempt 1 ended with code 137 (SIGKILL); "
        "attempt 2 of 3 begins at superstep 0: no attempt finished a log",
        "job.yaml: attempt 2 ended with code 137 (SIGKILL); "
        "attempt 3 of 3 begins at superstep 0: no attempt finished a log",
        "job.yaml: attempt 3 ended with code 137 (SIGKILL), and was the last: remove the cause; "
        "no attempt finished a log",
    ]
    assert len(list(folder.glob("died-*"))) == 3


def test_what_lay_there_before_is_gone_on_from_only_where_asked_for(folder: Path) -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    run(WCC(), graph, device="python", checkpoint=Checkpoint(folder / "log", every=1))
    outcome = sigps_run(folder, "--retries", 1, *killed(1), "--set", "params.at=1")
    assert outcome.code == 0, outcome.err
    assert reported(outcome)[0].endswith("attempt 2 of 2 begins at superstep 0: no attempt finished a log")
    (folder / "died-0").unlink()
    assert sigps_run(folder, "--retries", 1, "--resume", *killed(1), "--set", "params.at=1").code == 0
    assert not (folder / "died-0").exists()  # the first attempt went on from superstep 12


def test_a_wrong_job_is_not_tried_again(folder: Path) -> None:
    outcome = sigps_run(folder, "--retries", 3, "--set", "params.tims=1")
    assert outcome.code == 2
    assert outcome.err.count("error: ") == 1
    assert reported(outcome) == []


@pytest.mark.mpi
def test_a_launcher_in_a_launcher_is_refused(folder: Path, mpirun: str) -> None:
    outcome = sigps_run(folder, "--ranks", 2, under=(mpirun, "-n", "2"))
    assert outcome.code == 2
    assert outcome.err.count("leave mpirun out") == 1


def ready(folder: Path, ranks: int) -> None:
    for _ in range(SECONDS * 20):
        if len(list(folder.glob("ready-*"))) == ranks:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {ranks} ranks within {SECONDS} s")


@pytest.mark.parametrize(
    ("number", "options", "ranks", "code"),
    [
        (signal.SIGINT, ["--retries", "3"], 1, 130),
        (signal.SIGTERM, ["--retries", "3"], 1, 143),
        pytest.param(signal.SIGINT, ["--retries", "3", "--ranks", "2"], 2, 130, marks=pytest.mark.mpi),
    ],
)
def test_who_asks_for_an_end_gets_one(
    number: int,
    options: list[str],
    ranks: int,
    code: int,
    folder: Path,
    request: pytest.FixtureRequest,
) -> None:
    if ranks > 1:
        request.getfixturevalue("mpirun")
    process = start(folder, *options, "--set", "program=program.py:Forever")
    ready(folder, ranks)
    process.send_signal(number)
    outcome = end_of(process)
    assert outcome.code == code
    assert reported(outcome) == []


def test_an_interrupt_that_python_drops_comes_again(folder: Path) -> None:
    outcome = end_of(start(folder, "--set", "program=program.py:Drops"))
    assert (outcome.code, outcome.err.strip()) == (130, "interrupted")


@pytest.mark.mpi
def test_ranks_end_with_the_process_that_started_them(folder: Path, mpirun: str) -> None:
    process = start(folder, "--ranks", 2, "--set", "program=program.py:Forever")
    ready(folder, 2)
    process.kill()
    end_of(process)
    wait_until_gone([int(path.name.split("-")[1]) for path in folder.glob("ready-*")])
    assert sigps_run(folder, "--ranks", 2).code == 0  # the log folder is free again


def test_the_options_travel_with_an_attempt(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def run_attempt(command: list[str]) -> Ended:
        started.append(command)
        return Ended(0)

    launcher = folder / "launch"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    monkeypatch.setattr("sigps.cli.relaunch.run_attempt", run_attempt)
    options = ["--set", "params.at=3", "-o", str(folder / "r.csv"), "--dry-run", "--resume"]
    launch = ["--ranks", "3", "--launcher", f"{launcher} --oversubscribe"]
    assert cli.execute(["-vv", "run", str(folder / "job.yaml"), *options, *launch]) == 0
    assert started == [
        [
            *(str(launcher), "--oversubscribe", "-n", "3", sys.executable, "-P", "-m", "sigps"),
            *(
                "-v",
                "-v",
                "run",
                str(folder / "job.yaml"),
                "--set",
                "params.at=3",
                "--output",
                str(folder / "r.csv"),
            ),
            *("--dry-run", "--resume"),
        ]
    ]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--retries", "1", "--set", "checkpoint=null"], "--retries: {job} has no section 'checkpoint'"),
        (["--launcher", "mpiexec"], "say how many with --ranks N"),
        (["--ranks", "2", "--launcher", "no-such"], "no no-such beside {python} or on PATH: pip install"),
        (["--ranks", "2", "--launcher", ""], "--launcher is empty"),
        (["--ranks", "2", "--launcher", "mpirun 'x"], "No closing quotation; close the quotes"),
        (["--ranks", "0"], "0 is not in the range"),
        (["--retries", "-1"], "-1 is not in the range"),
    ],
)
def test_refused_before_anything_starts(
    options: list[str], complaint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = folder / "job.yaml"
    assert cli.execute(["run", str(job), *options]) == 2
    assert complaint.format(job=job, python=sys.executable) in capsys.readouterr().err
    assert not (folder / "log").exists()


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_a_launch_looks_at_the_launchers_variables(variable: str) -> None:
    assert launch_command(None, "mpirun", {variable: "1"}) == [sys.executable, "-P", "-m", "sigps"]
    with pytest.raises(ConfigError, match="a launcher has started 3 of this command: leave mpirun out"):
        launch_command(None, "mpirun", {variable: "3"})


@pytest.mark.parametrize(
    ("codes", "retries", "num_started"),
    [
        ([0], 3, 1),
        ([2], 3, 1),
        ([130], 3, 1),
        ([1, 0], 3, 2),
        ([9, 137, 2], 3, 3),
        ([9, 137, 1], 2, 3),
        ([1], 0, 1),
    ],
)
def test_which_codes_are_tried_again(
    codes: list[int], retries: int, num_started: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(codes)
    lines: list[str] = []
    monkeypatch.setattr("sigps.cli.relaunch.run_attempt", lambda command: Ended(left.pop(0)))
    code = relaunch(["sigps"], retries, tmp_path, resume=False, name="job", report=lines.append)
    assert (code, len(codes) - len(left)) == (codes[-1], num_started)
    assert len(lines) == num_started - (not (retries and Ended(code).may_be_retried))


def test_an_attempt_that_was_asked_to_end_is_the_last() -> None:
    assert Ended(143).may_be_retried  # the attempt itself got the signal
    assert not Ended(143, by_request=True).may_be_retried
    assert command_of("job.yaml", [], None, False, 0) == ["run", "job.yaml"]
