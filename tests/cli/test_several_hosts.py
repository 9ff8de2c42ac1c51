"""Jobs on two and three hosts, made of namespaces (`hosts`): the same results, logs, and a host that is lost.

Every command has a time limit, so that what hangs fails.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hosts import Hosts, made_hosts
from processes import SECONDS, end_of, wait_until_gone

from sigps.cli import main as cli

pytestmark = pytest.mark.mpi

JOB = """
program: program.py:Spread
graph: {path: edges.txt, directed: true}
engine: {device: python}
checkpoint: {every: 2, dir: log}
faults: {silent_seconds: 3}
output: {top: 0}
"""

PROGRAM = """
import os
import time
from pathlib import Path

from sigps import Param, State, Vertex


class Spread(Vertex, message=int):
    '''Sums its messages; where it is slow, a superstep takes a second.'''

    is_slow: Param[bool] = False
    seen: State[int] = 0

    def compute(self, messages):
        self.seen += sum(messages)
        if self.is_slow and self.id == 0:
            time.sleep(1.0)
            Path(f"ready-{self.superstep}").touch()
        if self.superstep == 0:
            Path(f"rank-{os.getpid()}").touch()
        if self.superstep < 9:
            self.send_to_neighbors(self.seen % 97 + 1)
        self.vote_to_halt()
"""

STRANGER = """
import socket
from sigps.group import rendezvous, world

connect = rendezvous.connect_to_master

def intrude(address, port, token, rank):
    assert address == "10.78.0.1", address
    for elsewhere in ("10.77.0.1", "172.17.0.1"):
        try:
            socket.create_connection((elsewhere, port), timeout=5)
        except OSError:
            continue
        raise AssertionError(f"rank 0 listens on {elsewhere}, too")
    with socket.create_connection((address, port), timeout=60) as stranger:
        stranger.sendall(bytes(36))
        assert stranger.recv(64) == b""
    return connect(address, port, token, rank)

rendezvous.connect_to_master = intrude
world().barrier()
print("connected")
"""


@pytest.fixture
def hosts(tmp_path: Path, mpirun: str) -> Iterator[Hosts]:
    draw = np.random.default_rng(1)
    np.savetxt(tmp_path / "edges.txt", draw.integers(0, 300, (1500, 2)), "%d")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    with made_hosts(tmp_path, mpirun, 3) as made:
        yield made


RUN = ("-m", "sigps", "run", "job.yaml")


def rows(path: Path) -> list[str]:
    parts = sorted(path.glob("part-*")) if path.is_dir() else [path]
    return sorted(line for part in parts for line in part.read_text().splitlines()[1:])


def test_a_job_has_the_results_of_one_host(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        cli.execute(
            ["run", str(tmp_path / "job.yaml"), "-o", str(tmp_path / "whole.csv"), "--set", "checkpoint=null"]
        )
        == 0
    )
    ended = hosts.run(4, *RUN, "-o", "parts.csv")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert len(rows(tmp_path / "whole.csv")) > 250
    assert rows(tmp_path / "parts.csv") == rows(tmp_path / "whole.csv")
    assert sorted(path.name[-8:] for path in (tmp_path / "log").glob("*-*")) == ["00000006", "00000008"]
    ended = hosts.run(2, *RUN, "-o", "again.csv", "--resume")
    assert ended.code == 0, ended.err
    assert rows(tmp_path / "again.csv") == rows(tmp_path / "whole.csv")
    ended = hosts.run(4, "-m", "sigps", "doctor")
    a, b, c = hosts.names
    assert re.search(rf"hosts +{a}: 0, 3; {b}: 1; {c}: 2\n", ended.out), ended.out + ended.err
    assert f"rank 0 on {a} listens on 10.77.0.1, a free port" in ended.out


def test_logs_in_a_folder_of_each_host_are_not_whole_and_that_is_said(hosts: Hosts, tmp_path: Path) -> None:
    ended = hosts.run(3, *RUN, "-o", "parts.csv", "--set", f"checkpoint.dir={hosts.private}/log")
    assert ended.code == 0, ended.err
    assert len(rows(tmp_path / "parts.csv")) > 250
    assert re.search(r"the log \S+ is not whole: .*part-0000[12]\.npz", ended.err), ended.err
    assert not list(tmp_path.glob("private-*/log/*/manifest.msgpack"))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_that_is_lost_is_named_and_all_ranks_end(lost: int, hosts: Hosts, tmp_path: Path) -> None:
    process = hosts.start(3, [*RUN, "--set", "params.is_slow=true"])
    for _ in range(SECONDS * 20):
        if (tmp_path / "ready-1").exists():
            break
        time.sleep(0.05)
    hosts.cut(lost)
    wait_until_gone([int(path.name.split("-")[1]) for path in tmp_path.glob("rank-*")])
    if lost:  # the launcher is on the first host
        ended = end_of(process)
        assert ended.code != 0
        found = re.findall(
            r"rank \d on host \S+ is silent (?:in superstep \d|while running): .* continue with --resume",
            ended.err,
        )
        assert [line.split()[1] for line in found] == ["1"], ended.err
        assert f"on host {hosts.names[1]} " in found[0]
    else:
        process.terminate()
        end_of(process)


def test_rank_0_listens_on_the_network_that_was_asked_for_and_refuses_strangers(
    hosts: Hosts, tmp_path: Path
) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER)
    ended = hosts.run(3, "stranger.py", SIGPS_INTERFACE="10.78.0.0/24")
    assert ended.code == 0, ended.err
    assert ended.out.count("connected") == 3
    ended = hosts.run(2, "stranger.py", SIGPS_INTERFACE="ib0")
    assert ended.code != 0
    assert "SIGPS_INTERFACE=ib0: rank 0's host has no such interface" in ended.err
