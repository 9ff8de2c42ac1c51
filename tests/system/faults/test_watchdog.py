"""The watchdog: the death that it reports, by whose connection closed first, and when it reports none."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sigps.system.faults import watchdog
from sigps.system.faults.watchdog import (
    BEGAN,
    ENDED,
    FAILED,
    REPORTED,
    Watchdog,
    WatchdogConnection,
    start_watchdog,
)

HOSTS = ["a", "b", "c"]


class Ranks:
    """Three ranks' ends of connections that a watchdog reads, in this process."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in HOSTS]
        status = bytearray(8192)
        self.ends = [WatchdogConnection(own) for own, _ in pairs]
        self.ends[0]._status = status  # type: ignore[assignment]
        self.ends[0].record_superstep(None)
        self.peers = [peer for _, peer in pairs]
        self.watchdog = Watchdog(self.peers, HOSTS, status)

    def send(self, *events: bytes) -> None:
        for end in self.ends:
            for event in events:
                end.send(event)

    def close(self, *ranks: int) -> None:
        for rank in ranks:
            self.ends[rank].close()


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    made = Ranks()
    yield made
    made.close(0, 1, 2)
    for peer in made.peers:
        peer.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_who_closed_first_died(ranks: Ranks, order: tuple[int, ...]) -> None:
    ranks.send(BEGAN)
    ranks.watchdog.receive()
    assert ranks.watchdog._ready.select(0) == []  # it waits: what comes now is in order
    ranks.ends[0].record_superstep(41)
    ranks.ends[0].record_log("log/40")
    ranks.close(*order)
    text = f"rank {order[0]} on host {HOSTS[order[0]]} died in superstep 41. "
    assert ranks.watchdog.run() == text + "The last log is log/40: continue with --resume"


def test_where_the_first_death_is_unknown_it_reports_none(ranks: Ranks) -> None:
    """A connection with unread events takes its place in the order by these, not by when it closed."""
    ranks.send(BEGAN)
    ranks.close(1, 0, 2)
    assert ranks.watchdog.run() is None


def test_the_only_closed_connection_is_known_also_with_unread_events(ranks: Ranks) -> None:
    ranks.send(BEGAN)
    ranks.close(1)
    ranks.watchdog.receive()
    ranks.close(0, 2)
    assert "rank 1 on host b died" in str(ranks.watchdog.run())


@pytest.mark.parametrize("first", [0, 2])
def test_a_rank_that_was_in_no_run_is_no_death_nor_are_those_after(ranks: Ranks, first: int) -> None:
    ranks.send(BEGAN)
    ranks.ends[first].send(ENDED)
    ranks.watchdog.receive()
    assert ranks.watchdog._ready.select(0) == []
    ranks.close(first, 1, 2 - first)
    assert ranks.watchdog.run() is None


def test_a_rank_that_began_anew_and_died_is_named(ranks: Ranks) -> None:
    ranks.send(BEGAN, ENDED)
    ranks.ends[1].send(BEGAN)
    ranks.watchdog.receive()
    assert ranks.watchdog._ready.select(0) == []
    ranks.close(1, 2, 0)
    assert ranks.watchdog.run() == "rank 1 on host b died before superstep 0. No log was written."


@pytest.mark.parametrize(
    "events",
    [(), (BEGAN, ENDED), (BEGAN, FAILED), (BEGAN, REPORTED), (BEGAN, ENDED, BEGAN, ENDED)],
)
def test_it_reports_none_where_no_rank_died_or_one_reported_it(
    ranks: Ranks, events: tuple[bytes, ...]
) -> None:
    ranks.send(*events)
    ranks.close(2, 1, 0)
    assert ranks.watchdog.run() is None


def test_after_a_death_a_rank_that_lives_may_report_it(ranks: Ranks) -> None:
    ranks.send(BEGAN)
    ranks.watchdog.receive()
    ranks.close(2, 1)
    ranks.ends[0].send(REPORTED)
    ranks.close(0)
    assert ranks.watchdog.run() is None


def test_a_shorter_name_replaces_a_longer_one(ranks: Ranks) -> None:
    ranks.send(BEGAN)
    for name in ("log/a-very-long-name", "log/b", None, "é" * 9000, "log/ü"):
        ranks.ends[0].record_log(name)
    ranks.watchdog.receive()
    ranks.close(2, 1, 0)
    assert "The last log is log/ü: " in str(ranks.watchdog.run())


RANK_0 = """
import fcntl, os, signal, socket, struct, sys, termios, time
from sigps.system.faults.watchdog import BEGAN, start_watchdog
own, peer = socket.socketpair()
watchdog = start_watchdog({1: peer}, ["a", "b"])
for end in (watchdog, type(watchdog)(own)):
    end.send(BEGAN)
watchdog.record_superstep(7)
watchdog.record_log("log/7")
while any(
    struct.unpack("i", fcntl.ioctl(end, termios.TIOCOUTQ, bytes(4)))[0] for end in (own, watchdog._socket)
):
    time.sleep(0.01)  # until it has read these
time.sleep(0.1)
if sys.argv[1] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("way", "died"), [("dies", "rank 0 on host a died in superstep 7"), ("leaves", "")])
def test_the_process_outlives_the_ranks(way: str, died: str) -> None:
    ended = subprocess.run([sys.executable, "-c", RANK_0, way], capture_output=True, text=True, timeout=60)
    assert ended.stderr.startswith(died)


def test_it_ends_with_the_ranks() -> None:
    own, peer = socket.socketpair()
    started = start_watchdog({1: peer}, HOSTS[:2])
    own.close()
    started.close()
    process: Any = started._process
    assert process.wait(60) == 0


def test_where_it_cannot_start_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog.sys, "executable", "/nowhere/python")
    own, peer = socket.socketpair()
    with own, pytest.raises(OSError, match="/nowhere/python"):
        start_watchdog({1: peer}, HOSTS[:2])
    assert peer.fileno() == -1
