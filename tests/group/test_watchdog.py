"""The watchdog of one rank: a process to look at, and sockets in the place of the other ranks and their watchdogs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from processes import is_running

from sigps.group.fault import Fault
from sigps.group.status import Status
from sigps.group.verdict import Report
from sigps.group.watchdog import Watchdog

HOSTS = ["a", "b", "c"]
SECONDS = 120


class Rank:
    """A process that stands for a rank, and its watchdog; `peers`, `lives`, `own` are the other ends of its sockets."""

    def __init__(self, rank: int, launcher: int | None = None, **limits: float) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        self.status = Status.create()
        self.status.superstep = 7
        for name, value in {"silent_seconds": 3600.0, **limits}.items():
            setattr(self.status, name, value)
        others = [1, 2] if rank == 0 else [0]
        pairs = {other: socket.socketpair() for other in others}
        lives = {other: socket.socketpair() for other in others} if rank == 0 else {}
        self.own, own = socket.socketpair()
        self.peers = {other: pair[0] for other, pair in pairs.items()}
        self.lives = {other: pair[0] for other, pair in lives.items()}
        self._inner = [own, *(end for pair in (*pairs.values(), *lives.values()) for end in pair)]
        self.watchdog = Watchdog(
            rank,
            self.process.pid,
            os.getpid() if launcher is None else launcher,
            HOSTS,
            {rank: self.status},
            own,
            {other: pair[1] for other, pair in pairs.items()},
            {other: pair[1] for other, pair in lives.items()},
        )

    def say(self, rank: int, **report: Any) -> None:
        self.send(rank, {"report": asdict(Report(**{"superstep": 7, **report}))})

    def send(self, rank: int, message: dict[str, Any]) -> None:
        self.peers[rank].sendall(json.dumps(message).encode() + b"\n")

    def verdict(self) -> Fault | None:
        """Run the watchdog to its end."""
        found: list[Fault | None] = []
        thread = threading.Thread(target=lambda: found.append(self.watchdog.run()), daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert found, "the watchdog still runs"
        return found[0]

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.watchdog._ready.close()
        for end in (self.own, *self._inner):
            end.close()


@pytest.fixture
def ranks() -> Iterator[list[Rank]]:
    made: list[Rank] = []
    yield made
    for rank in made:
        rank.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_whose_process_ended_first_died(ranks: list[Rank], order: tuple[int, ...]) -> None:
    ranks.append(Rank(0))
    for rank in (1, 2):
        ranks[0].say(rank)
    ends = {0: ranks[0].own, **ranks[0].lives}
    for rank in order:  # before the watchdog reads anything, as where it has no core
        ends[rank].close()
    for rank in (2, 1):
        ranks[0].say(rank, end="died")
    assert ranks[0].verdict() == Fault(order[0], HOSTS[order[0]], "in superstep 7", "died")


def test_ranks_that_end_by_themselves_are_no_fault(ranks: list[Rank]) -> None:
    ranks.append(Rank(0))
    ranks[0].status.record_end()
    for rank in (1, 2):
        ranks[0].say(rank, ended=0.0, end="ended")
        ranks[0].lives[rank].close()
        ranks[0].peers[rank].shutdown(socket.SHUT_WR)
    ranks[0].own.close()
    assert ranks[0].verdict() is None


def test_a_watchdog_that_is_lost_is_lost_with_its_rank(ranks: list[Rank]) -> None:
    ranks.append(Rank(0))
    ranks[0].say(2)
    ranks[0].peers[2].sendall(b'{"report": {"super')
    ranks[0].peers[2].close()
    assert ranks[0].verdict() == Fault(2, "c", "in superstep 7", "died")
    messages = [json.loads(line) for line in ranks[0].peers[1].recv(1 << 16).splitlines()]
    assert messages[-1]["fault"]["rank"] == 2


def test_a_message_that_was_cut_is_no_message(ranks: list[Rank]) -> None:
    ranks.append(Rank(1))
    ranks[0].peers[0].sendall(b'{"report": {"super\n')
    ranks[0].send(0, {"fault": vars(Fault(2, "c", "in superstep 7", "died"))})
    assert ranks[0].verdict() is None  # rank 0's has reported it
    assert is_running(ranks[0].process.pid)
    ranks[0].watchdog.end_rank()
    assert ranks[0].process.wait(SECONDS) == -signal.SIGKILL


def test_a_rank_finds_that_rank_0_is_silent(ranks: list[Rank]) -> None:
    ranks.append(Rank(1, silent_seconds=1.0))
    ranks[0].say(0, last_log="log/6", failed=99.0, stopped=99.0)  # which rank 0's watchdog judges
    found = ranks[0].verdict()
    assert found is not None
    assert (found.rank, found.what, found.where) == (0, "is silent", "in superstep 7")
    assert ranks[0].watchdog.last_log == "log/6"


def test_a_stopped_process_is_reported_as_such(ranks: list[Rank]) -> None:
    ranks.append(Rank(0, silent_seconds=0.5))
    ranks[0].process.send_signal(signal.SIGSTOP)
    beats = threading.Event()

    def beat() -> None:
        while not beats.wait(0.1):
            for rank in (1, 2):
                ranks[0].say(rank)

    thread = threading.Thread(target=beat)
    thread.start()
    found = ranks[0].verdict()
    beats.set()
    thread.join()
    assert found is not None
    assert (found.rank, found.what) == (0, "is stopped")


def test_a_rank_without_its_launcher_ends(ranks: list[Rank]) -> None:
    ranks.append(Rank(1, launcher=1))
    assert ranks[0].verdict() is None
    assert ranks[0].process.wait(SECONDS) == -signal.SIGKILL
    *_, last = ranks[0].peers[0].recv(1 << 16).splitlines()
    assert json.loads(last)["report"]["end"] == "lost its launcher"


def test_what_was_stopped_with_all_others_counts_from_when_these_went_on(ranks: list[Rank]) -> None:
    ranks.append(Rank(0, silent_seconds=1000.0))
    watchdog, now = ranks[0].watchdog, time.monotonic()
    reports = watchdog._reports
    for rank in range(3):
        reports[rank] = Report(superstep=7, stopped=2000.0)
    assert watchdog._verdict(now) is None
    reports[0] = reports[1] = Report(superstep=7)
    reports[2] = Report(superstep=7, stopped=2001.0)
    assert watchdog._verdict(now + 1.0) is None
    reports[2] = Report(superstep=7, stopped=3001.0)
    watchdog._heard_at = dict.fromkeys((1, 2), now + 1001.0)
    found = watchdog._verdict(now + 1001.0)
    assert found is not None
    assert (found.rank, found.what) == (2, "is stopped")
