"""Ranks that are processes, on one GPU or several: kernels that write into each other's memory, and lose each other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_cases import CASES
from places import SUPPORT
from processes import end_of

pytestmark = [pytest.mark.gpu, pytest.mark.mpi]

HERE = SUPPORT
SECONDS = 600


def start(mpirun: str, ranks: int, *arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(p for p in (str(HERE), os.environ.get("PYTHONPATH", "")) if p)
    return subprocess.Popen(
        [mpirun, "-n", str(ranks), sys.executable, str(HERE / "gpu_rank_script.py"), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_script(mpirun: str, ranks: int, *arguments: str) -> str:
    code, out, err = end_of(start(mpirun, ranks, *arguments), SECONDS)
    assert code == 0, f"{out}\n{err}"
    return out


@pytest.mark.parametrize("transport", ["peer", "mpi"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_ranks_give_the_interpreters_results(transport: str, ranks: int, mpirun: str) -> None:
    assert "runs agree" in run_script(mpirun, ranks, "equality", transport, str(ranks))


def skip_without_gpus(count: int) -> None:
    from cupy.cuda import runtime

    if runtime.getDeviceCount() < count:
        pytest.skip(f"needs {count} GPUs: NCCL refuses ranks that share one")


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_give_the_interpreters_results_by_nccl(ranks: int, turn: int, mpirun: str) -> None:
    skip_without_gpus(ranks)
    assert "runs agree" in run_script(mpirun, ranks, "equality", "nccl", str(turn))


@pytest.mark.parametrize("turn", [0, 3])
@pytest.mark.parametrize(("transport", "ranks"), [("peer", 2), ("peer", 3), ("mpi", 2), ("nccl", 2)])
def test_ranks_pull_over_tiles(transport: str, ranks: int, turn: int, mpirun: str) -> None:
    skip_without_gpus(ranks if transport == "nccl" else 1)
    assert "16 runs over tiles agree" in run_script(mpirun, ranks, "tiles", transport, str(turn))


@pytest.mark.parametrize("transport", ["peer", "mpi"])
def test_runs_over_tiles_go_on_from_logs(transport: str, mpirun: str, tmp_path: Path) -> None:
    assert "3 runs over tiles went on" in run_script(mpirun, 2, "tiles_logs", transport, str(tmp_path))


@pytest.mark.parametrize(
    ("transport", "ranks"), [("peer", 2), ("peer", 3), ("mpi", 2), ("mpi", 3), ("nccl", 2)]
)
def test_ranks_stream_packed_edges(transport: str, ranks: int, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(ranks if transport == "nccl" else 1)
    count = 30 if transport == "mpi" else 50
    assert f"{count} streamed runs agree" in run_script(mpirun, ranks, "packed", transport, str(tmp_path))


@pytest.mark.parametrize("transport", ["peer", "mpi"])
def test_ranks_walk_packed_edges(transport: str, mpirun: str, tmp_path: Path) -> None:
    assert "18 runs beside packed edges agree" in run_script(mpirun, 2, "walks", transport, str(tmp_path))


@pytest.mark.parametrize(("transport", "ranks"), [("mpi", 2), ("mpi", 3), ("nccl", 2)])
def test_ranks_keep_values_on_packed_edges(transport: str, ranks: int, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(2 if transport == "nccl" else 1)
    found = run_script(mpirun, ranks, "values", transport, str(tmp_path))
    assert "35 runs with values on packed edges agree" in found


@pytest.mark.parametrize("transport", ["peer", "nccl"])
def test_runs_go_on_from_logs(transport: str, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(2 if transport == "nccl" else 1)
    assert "7 runs went on" in run_script(mpirun, 2, "logs", transport, str(tmp_path))


@pytest.mark.parametrize("transport", ["peer", "nccl"])
def test_masters_agree(transport: str, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(2 if transport == "nccl" else 1)
    assert "masters agree" in run_script(mpirun, 2, "masters", transport, str(tmp_path))


@pytest.mark.parametrize("transport", ["peer", "nccl"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_more_mail_than_there_is_room_for(transport: str, ranks: int, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(ranks if transport == "nccl" else 1)
    assert "all heard" in run_script(mpirun, ranks, "direct_messages", transport, str(tmp_path))


@pytest.mark.parametrize("transport", ["peer", "mpi"])
def test_mail_to_nobody_is_an_error(transport: str, mpirun: str) -> None:
    code, out, err = end_of(start(mpirun, 2, "stray", transport, ""), SECONDS)
    assert code != 0
    assert re.search(r"send_to\(4711\) names a vertex that is not in the graph", out + err), f"{out}\n{err}"


@pytest.mark.parametrize("ranks", [2, 3])
def test_many_runs_are_shared_out(ranks: int, mpirun: str) -> None:
    assert "programs ran shared out" in run_script(mpirun, ranks, "many", "peer", "")
    assert "one at a time" in run_script(mpirun, ranks, "many_too_large", "peer", "")


@pytest.mark.parametrize(("ranks", "turn"), [(2, 0), (2, 1), (3, 2)])
def test_streams_go_on(ranks: int, turn: int, mpirun: str) -> None:
    assert "102 batches followed" in run_script(mpirun, ranks, "streams", "peer", str(turn))


def test_many_supersteps(mpirun: str) -> None:
    assert "300 supersteps" in run_script(mpirun, 2, "supersteps", "peer", "300")


def test_a_rank_that_is_slower_is_waited_for(mpirun: str) -> None:
    assert "waited" in run_script(mpirun, 3, "unequal", "peer", "")


def test_a_bucket_that_is_released_later_is_waited_for(mpirun: str) -> None:
    assert "none came too early" in run_script(mpirun, 2, "slow_release", "peer", "0.2")


def test_a_rank_that_does_not_come_is_named(mpirun: str) -> None:
    code, out, err = end_of(start(mpirun, 2, "lost", "peer", "2"), SECONDS)
    assert code != 0
    assert re.search(r"ExchangeError: rank 1, superstep 0: it did not come to the end", out), f"{out}\n{err}"


def ranks_of(launcher: subprocess.Popen[str]) -> list[int]:
    """Return the processes that a launcher started for ranks."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    family = {launcher.pid}
    for _ in rows:
        family |= {int(pid) for pid, parent, _ in rows if int(parent) in family}
    is_rank = re.compile(rf"{re.escape(sys.executable)} \S+gpu_rank_script\.py").match
    return [int(pid) for pid, _, command in rows if int(pid) in family and is_rank(command)]


@pytest.mark.parametrize("transport", ["peer", "nccl", "mpi"])
def test_a_rank_that_is_killed_ends_the_run(transport: str, mpirun: str) -> None:
    skip_without_gpus(2 if transport == "nccl" else 1)
    process = start(mpirun, 2, "forever", transport, "")
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    began = time.monotonic()
    ranks = ranks_of(process)
    assert len(ranks) == 2
    os.kill(ranks[-1], signal.SIGKILL)
    code, _, _ = end_of(process, SECONDS)
    assert code != 0
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("transport", ["peer", "nccl", "mpi"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_agree_by_the_edge_schedule(transport: str, ranks: int, mpirun: str) -> None:
    skip_without_gpus(ranks if transport == "nccl" else 1)
    assert "runs by edge agree" in run_script(mpirun, ranks, "by_edge", transport, str(ranks))


@pytest.mark.parametrize("transport", ["auto", "peer", "nccl", "mpi"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_agree_on_what_is_kept_on_edges(transport: str, ranks: int, mpirun: str) -> None:
    skip_without_gpus(ranks if transport == "nccl" else 1)
    assert "runs with edges agree" in run_script(mpirun, ranks, "edges", transport, str(ranks))


@pytest.mark.parametrize("transport", ["nccl", "mpi"])
def test_runs_with_edges_go_on_from_logs(transport: str, mpirun: str, tmp_path: Path) -> None:
    skip_without_gpus(2 if transport == "nccl" else 1)
    assert "3 runs with edges went on" in run_script(mpirun, 2, "edge_logs", transport, str(tmp_path))


@pytest.mark.parametrize("ranks", [2, 3])
def test_peers_all_name_the_vertex(ranks: int, mpirun: str) -> None:
    assert "faults named on all ranks" in run_script(mpirun, ranks, "faults", "peer", "")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_components_at_once(ranks: int, mpirun: str) -> None:
    assert "components of 7 graphs" in run_script(mpirun, ranks, "components", "peer", "")


@pytest.mark.parametrize("name", ["division", "sum", "along_an_edge", "sent_directly"])
def test_staged_ranks_end(name: str, mpirun: str) -> None:
    code, out, err = end_of(start(mpirun, 2, "one_fault", "mpi", name), SECONDS)
    assert code != 0
    assert re.search(rf"ComputeError.*{CASES[name].says}", out + err), f"{out}\n{err}"
