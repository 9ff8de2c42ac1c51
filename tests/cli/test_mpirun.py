"""Scripts under `mpirun`: the results of one process, and an end for all ranks where one fails.

Every command has a time limit, so that what hangs fails.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import SUPPORT
from processes import SECONDS, end_of, wait_until_gone

pytestmark = pytest.mark.mpi


HEAD = """
import os, sys, time
import numpy as np
import sigps
from sigps import Graph, State, Vertex
from sigps.group import world

rank = world().rank
"""

SAME_RESULTS = """
import json
import equality_programs
from sigps.apps import BFS, PageRank, SSSP, WCC

draw = np.random.default_rng(3)
sources, targets = draw.integers(0, 300, (2, 1500))
weights = draw.random(1500)
plain = Graph.from_edges(sources * 7, targets * 7, weights)
names = Graph.from_edges([f"v{i}" for i in sources], [f"v{i}" for i in targets], directed=False)
start = f"v{sources[0]}"
runs = [
    (PageRank(iterations=5), plain, {"deterministic": True}),
    (SSSP(source=int(sources[0]) * 7), plain, {"partitioner": "hash"}),
    (equality_programs.Spread(), plain, {"deterministic": True, "partitioner": "vertices"}),
    (equality_programs.Jump(), plain, {}),
    (equality_programs.Totals(), plain, {"device": "python", "deterministic": True}),
    (BFS(source=start), names, {"direction": "push"}),
    (WCC(), names, {"partitioner": "bfs"}),
]
for program, graph, options in runs:
    result = sigps.run(program, graph, **options)
    if rank == 0:
        ids = [str(i) for i in result.ids]
        print(json.dumps([type(program).__name__, ids, result.reason, result.supersteps,
                          {f: result[f].tolist() for f in result.fields}, result.aggregators]))
"""

FAILS_IN_COMPUTE = """
class Fails(Vertex, message=int):
    seen: State[int] = 0

    def compute(self, messages):
        self.seen = 1
        if self.superstep == 2 and self.id == 9:
            raise ValueError("nine is unwanted")

sigps.run(Fails(), Graph.from_edges(range(9), range(1, 10)), device="python", max_supersteps=9)
print("after the run")
"""

SENDS_TO_NOBODY = """
class Lost(Vertex, message=int):
    seen: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1 and self.id == 0:
            self.send_to(1234567, 1)
        if self.superstep == 3:
            self.vote_to_halt()

sigps.run(Lost(), Graph.from_edges(range(9), range(1, 10)))
print("after the run")
"""

FAILS_ON_ONE_RANK = """
graph = Graph.from_edges(range(9), range(1, 10))
if rank == 1:
    print(undefined_name)
sigps.run(sigps.apps.WCC(), graph) if False else world().barrier()
print("after the barrier")
"""

MISSING_FILE = """
sigps.load("no-such-file.txt")
"""

NEVER_ENDS = """
class Forever(Vertex):
    seen: State[int] = 0

    def compute(self, messages):
        self.seen += 1

def report(stats):
    if len(stats) >= 3:
        open(f"ready-{os.getpid()}", "w").close()

open(f"rank-{rank}-{os.getpid()}", "w").close()
sigps.run(Forever(), Graph.from_edges(range(9), range(1, 10)), progress=report)
"""


def start(mpirun: str, folder: Path, script: str, ranks: int) -> subprocess.Popen[str]:
    file = folder / "script.py"
    file.write_text(HEAD + script)
    here = str(SUPPORT)
    path = os.pathsep.join(p for p in (here, os.environ.get("PYTHONPATH", "")) if p)
    command = [sys.executable, str(file)]
    return subprocess.Popen(
        [mpirun, "-n", str(ranks), *command] if ranks > 1 else command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_script(mpirun: str, folder: Path, script: str, ranks: int) -> tuple[int, str, str]:
    return end_of(start(mpirun, folder, script, ranks))


def test_several_processes_give_the_results_of_one(mpirun: str, tmp_path: Path) -> None:
    code, alone, err = run_script(mpirun, tmp_path, SAME_RESULTS, 1)
    assert code == 0, err
    lines = [json.loads(line) for line in alone.splitlines()]
    assert [line[0] for line in lines] == ["PageRank", "SSSP", "Spread", "Jump", "Totals", "BFS", "WCC"]
    code, together, err = run_script(mpirun, tmp_path, SAME_RESULTS, 3)
    assert code == 0, err
    assert [json.loads(line) for line in together.splitlines()] == lines


def test_an_exception_in_compute_ends_all_ranks(mpirun: str, tmp_path: Path) -> None:
    code, out, err = run_script(mpirun, tmp_path, FAILS_IN_COMPUTE, 3)
    assert code != 0
    assert "after the run" not in out
    assert err.count("Traceback (most recent call last)") == 1, err
    assert "ValueError: nine is unwanted" in err
    # Contiguous parts: the last rank has vertex 9.
    assert f"rank 2 on host {platform.node()}, superstep 2" in err, err


def test_a_message_to_a_missing_vertex_ends_all_ranks(mpirun: str, tmp_path: Path) -> None:
    code, out, err = run_script(mpirun, tmp_path, SENDS_TO_NOBODY, 2)
    assert code != 0
    assert "after the run" not in out
    assert err.count("Traceback (most recent call last)") == 1, err
    assert "send_to(1234567)" in err
    assert "rank 0, superstep 1" in err


def test_a_mistake_of_the_script_on_one_rank_ends_all(mpirun: str, tmp_path: Path) -> None:
    code, out, err = run_script(mpirun, tmp_path, FAILS_ON_ONE_RANK, 3)
    assert code != 0
    assert "after the barrier" not in out
    assert err.count("Traceback (most recent call last)") == 1, err
    assert "undefined_name" in err
    assert "rank 1" in err


def test_a_missing_file_is_reported_once(mpirun: str, tmp_path: Path) -> None:
    code, _, err = run_script(mpirun, tmp_path, MISSING_FILE, 3)
    assert code != 0
    assert err.count("Traceback (most recent call last)") == 1, err
    assert "GraphError: no-such-file.txt: no such file" in err


def started_ranks(folder: Path, ranks: int) -> dict[int, int]:
    """Wait until every rank runs and supersteps pass; return the ranks' process ids."""
    for _ in range(SECONDS * 20):
        files = [f.name.split("-") for f in folder.glob("rank-*")]
        if len(files) == ranks and list(folder.glob("ready-*")):
            return {int(rank): int(pid) for _, rank, pid in files}
        time.sleep(0.05)
    raise AssertionError(f"the ranks did not start within {SECONDS} s")


def test_a_killed_rank_ends_the_others(mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, NEVER_ENDS, 2)
    try:
        pids = started_ranks(tmp_path, 2)
        os.kill(pids[0], signal.SIGKILL)
        code, _, _ = end_of(process)
        assert code != 0
        wait_until_gone(list(pids.values()))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_interrupt_ends_all_ranks(ranks: int, mpirun: str, tmp_path: Path) -> None:
    process = start(mpirun, tmp_path, NEVER_ENDS, ranks)
    try:
        pids = started_ranks(tmp_path, ranks)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends Ctrl-C to all in the foreground
        code, _, _ = end_of(process)
        assert code != 0
        wait_until_gone(list(pids.values()))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
