"""The watchdog: whose connection closed first, of whom, and when it is silent."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sigps.system.faults import watchdog as watchdog
from sigps.system.faults.watchdog import BEGUN, ENDED, FAILED, SPOKEN, Watch, Watchdog, start_watchdog

HOSTS = ["a", "b", "c"]


class Ranks:
    """Three ranks' ends of connections that a watch reads, in this process."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in HOSTS]
        note = bytearray(8192)
        self.ends = [Watchdog(own) for own, _ in pairs]
        self.ends[0]._note = note  # type: ignore[assignment]
        self.ends[0].note(None)
        self.peers = [peer for _, peer in pairs]
        self.watch = Watch(self.peers, HOSTS, note)

    def tell(self, *what: bytes) -> None:
        for end in self.ends:
            for word in what:
                end.tell(word)

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
    ranks.tell(BEGUN)
    ranks.watch.hear()
    assert ranks.watch._ready.select(0) == []  # it waits: what comes now is in order
    ranks.ends[0].note(41)
    ranks.ends[0].note_log("log/40")
    ranks.close(*order)
    text = f"rank {order[0]} on host {HOSTS[order[0]]} died in superstep 41. "
    assert ranks.watch.run() == text + "The last log is log/40: continue with --resume"


def test_where_nobody_knows_who_was_first_it_is_silent(ranks: Ranks) -> None:
    """What was told and not read yet has its own place in the order."""
    ranks.tell(BEGUN)
    ranks.close(1, 0, 2)
    assert ranks.watch.run() is None


def test_one_that_is_gone_with_what_it_told_unread_is_known(ranks: Ranks) -> None:
    ranks.tell(BEGUN)
    ranks.close(1)
    ranks.watch.hear()
    ranks.close(0, 2)
    assert "rank 1 on host b died" in str(ranks.watch.run())


@pytest.mark.parametrize("first", [0, 2])
def test_a_rank_that_was_in_no_run_is_no_death_nor_are_those_after(ranks: Ranks, first: int) -> None:
    ranks.tell(BEGUN)
    ranks.ends[first].tell(ENDED)
    ranks.watch.hear()
    assert ranks.watch._ready.select(0) == []
    ranks.close(first, 1, 2 - first)
    assert ranks.watch.run() is None


def test_a_rank_that_began_anew_and_died_is_named(ranks: Ranks) -> None:
    ranks.tell(BEGUN, ENDED)
    ranks.ends[1].tell(BEGUN)
    ranks.watch.hear()
    assert ranks.watch._ready.select(0) == []
    ranks.close(1, 2, 0)
    assert ranks.watch.run() == "rank 1 on host b died before superstep 0. No log was written."


@pytest.mark.parametrize(
    "told",
    [(), (BEGUN, ENDED), (BEGUN, FAILED), (BEGUN, SPOKEN), (BEGUN, ENDED, BEGUN, ENDED)],
)
def test_it_is_silent_where_nobody_died_or_somebody_spoke(ranks: Ranks, told: tuple[bytes, ...]) -> None:
    ranks.tell(*told)
    ranks.close(2, 1, 0)
    assert ranks.watch.run() is None


def test_after_a_death_a_rank_that_lives_may_speak(ranks: Ranks) -> None:
    ranks.tell(BEGUN)
    ranks.watch.hear()
    ranks.close(2, 1)
    ranks.ends[0].tell(SPOKEN)
    ranks.close(0)
    assert ranks.watch.run() is None


def test_a_shorter_name_replaces_a_longer_one(ranks: Ranks) -> None:
    ranks.tell(BEGUN)
    for name in ("log/a-very-long-name", "log/b", None, "é" * 9000, "log/ü"):
        ranks.ends[0].note_log(name)
    ranks.watch.hear()
    ranks.close(2, 1, 0)
    assert "The last log is log/ü: " in str(ranks.watch.run())


RANK_0 = """
import fcntl, os, signal, socket, struct, sys, termios, time
from sigps.system.faults.watchdog import BEGUN, start_watchdog
own, peer = socket.socketpair()
watchdog = start_watchdog({1: peer}, ["a", "b"])
for end in (watchdog, type(watchdog)(own)):
    end.tell(BEGUN)
watchdog.note(7)
watchdog.note_log("log/7")
while any(
    struct.unpack("i", fcntl.ioctl(end, termios.TIOCOUTQ, bytes(4)))[0] for end in (own, watchdog._connection)
):
    time.sleep(0.01)  # until it has read what was told
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
