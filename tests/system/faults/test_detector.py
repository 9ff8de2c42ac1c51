"""The fault detector: ranks as threads with short limits, and processes under `mpirun` that are lost.

Nothing asserts how fast a fault is found; a limit of SECONDS makes what hangs fail.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_script import faults_in, pids, start
from processes import end_of, wait_until_gone
from thread_group import ThreadGroup

from sigps.group import Alone
from sigps.system.faults import connections, rendezvous
from sigps.system.faults.detector import Fault, FaultDetector
from sigps.system.faults.rendezvous import accept_ranks, connect_to_master

SECONDS = 60
LONG = 3600.0


class Watched:
    """A rank's detector and what it found."""

    def __init__(self, group: ThreadGroup, **limits: Any) -> None:
        self.faults: queue.Queue[Fault] = queue.Queue()
        limits = {"interval": 0.05, "silent_seconds": LONG, **limits}
        self.detector = FaultDetector(group, on_fault=self.faults.put, **limits)

    def fault(self) -> tuple[int, int | None, str]:
        found = self.faults.get(timeout=SECONDS)
        return found.rank, found.superstep, found.what


def cut(detector: FaultDetector) -> None:
    """End a rank's connections as a dead process does: it sends nothing more."""
    detector._send = lambda message: None  # type: ignore[method-assign]
    for peer in list(detector._peers.values()):
        with contextlib.suppress(OSError):  # its own thread may be faster, and close
            peer.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_death_is_reported_to_all(victim: int, run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str] | None:
        watched = Watched(group)
        with watched.detector as detector:
            detector.computing(7)
            group.barrier()
            if group.rank == victim:
                cut(detector)
                return None
            return watched.fault()

    found = run_ranks(3, watch)
    assert [f for rank, f in enumerate(found) if rank != victim] == [(victim, 7, "died")] * 2


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_rank_without_heartbeats_is_silent(victim: int, run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str]:
        limits = (
            {"interval": LONG, "silent_seconds": LONG} if group.rank == victim else {"silent_seconds": 1.0}
        )
        watched = Watched(group, **limits)
        with watched.detector as detector:
            detector.computing(3)
            group.barrier()
            return watched.fault()

    assert run_ranks(3, watch) == [(victim, 3, "is silent")] * 3


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_computing_for_too_long_is_a_hang(victim: int, run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str]:
        watched = Watched(group, superstep_seconds=0.5)
        with watched.detector as detector:
            detector.computing(4)
            if group.rank != victim:
                detector.waiting()
            return watched.fault()

    assert run_ranks(3, watch) == [(victim, 4, "hangs")] * 3


def test_waiting_is_no_hang_and_a_superstep_starts_anew(run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> bool:
        watched = Watched(group, superstep_seconds=1.0)
        with watched.detector as detector:
            for superstep in range(15):
                detector.computing(superstep)
                time.sleep(0.1)
            detector.waiting()
            time.sleep(1.5)
        return watched.faults.empty()

    assert run_ranks(2, watch) == [True] * 2


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_goodbye_is_no_death_and_no_silence(first: int, run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> bool:
        watched = Watched(group, silent_seconds=5.0)
        with watched.detector as detector:
            detector.computing(0)
            group.barrier()
            if group.rank == first:
                detector.close()
            group.barrier()
            # Until the goodbye has arrived; a death would be reported in its place.
            gone = [first] if group.rank == 0 else [0] if first == 0 else []
            wait_for(lambda: not any(rank in detector._peers for rank in gone))
        detector.close()
        return watched.faults.empty()

    assert run_ranks(3, watch) == [True] * 3


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the rank whenever connections are made."""
    noted: list[int] = []
    make = connections.connect_ranks

    def note(group: Any, hosts: list[str]) -> Any:
        noted.append(group.rank)
        return make(group, hosts)

    monkeypatch.setattr(connections, "connect_ranks", note)
    return noted


def test_later_runs_use_the_connections_of_the_first(
    openings: list[int], run_ranks: Callable[..., Any]
) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str] | None:
        for _ in range(3):
            with Watched(group).detector:
                group.barrier()
        watched = Watched(group)
        with watched.detector as detector:
            detector.computing(7)
            group.barrier()
            if group.rank == 2:
                cut(detector)
                return None
            return watched.fault()

    assert run_ranks(3, watch) == [(2, 7, "died"), (2, 7, "died"), None]
    assert sorted(openings) == [0, 1, 2]


def test_a_watch_that_failed_does_not_leave_later_runs_unwatched(
    run_ranks: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def watch(group: ThreadGroup) -> bool:
        broken = Watched(group)
        with broken.detector as detector:
            detector._overdue = refuse  # type: ignore[method-assign]
            wait_for(detector._is_done.is_set)
            group.barrier()
        group.barrier()
        watched = Watched(group, silent_seconds=1.0)
        with watched.detector:
            group.barrier()
            time.sleep(2.0)
        return watched.faults.empty()

    assert run_ranks(2, watch) == [True] * 2
    assert "this run is not watched any more" in caplog.text


def test_after_a_failure_connections_are_made_anew(
    openings: list[int], run_ranks: Callable[..., Any]
) -> None:
    def watch(group: ThreadGroup) -> None:
        for has_failure in (True, False, False):
            with contextlib.suppress(ValueError), Watched(group).detector as detector:
                group.barrier()
                if has_failure and group.rank == 1:
                    raise ValueError("unwanted")
                wait_for(lambda: not has_failure or group.rank == 2 or 1 not in detector._peers)  # noqa: B023

    run_ranks(3, watch)
    assert sorted(openings) == [0, 0, 1, 1, 2, 2]


def test_what_a_run_left_unread_is_not_received_by_the_next(run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> list[int]:
        with Watched(group).detector:
            group.barrier()
        group.barrier()
        for peer in connections._kept[group].by_rank.values():
            peer.send({"kind": "goodbye", "has_failed": False, "superstep": 3})
        group.barrier()
        with Watched(group).detector as second:
            group.barrier()
            time.sleep(0.5)
            received_of = sorted(second._peers)
            group.barrier()  # a rank that leaves from here on sends goodbye, which is rightly received
            return received_of

    assert run_ranks(3, watch) == [[1, 2], [0], [0]]


def wait_for(claim: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 100):
        if claim():
            return
        time.sleep(0.01)
    raise AssertionError(f"still not so after {SECONDS} s")


@pytest.mark.parametrize("victim", [0, 2])
def test_an_exception_for_which_the_others_wait_is_named(victim: int, run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str] | None:
        watched = Watched(group, silent_seconds=1.0)
        try:
            with watched.detector as detector:
                detector.computing(6)
                group.barrier()
                if group.rank == victim:
                    raise ValueError("unwanted")
                return watched.fault()
        except ValueError:
            return None

    found = run_ranks(3, watch)
    assert [f for rank, f in enumerate(found) if rank != victim] == [(victim, 6, "failed")] * 2


def test_deaths_after_a_failure_are_not_the_cause(run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> tuple[int, int | None, str] | None:
        watched = Watched(group, silent_seconds=1.5)
        with watched.detector as detector:
            detector.computing(6)
            group.barrier()
            if group.rank == 2:
                detector._has_failed = True
                detector.close()
            group.barrier()
            if group.rank == 1:
                wait_for(lambda: bool(detector._failed))
                cut(detector)
            return watched.fault() if group.rank == 0 else None

    assert run_ranks(3, watch)[0] == (2, 6, "failed")


def test_what_all_ranks_raise_is_no_fault(run_ranks: Callable[..., Any]) -> None:
    def watch(group: ThreadGroup) -> bool:
        watched = Watched(group)
        with pytest.raises(ValueError, match="unwanted"), watched.detector:
            raise ValueError("unwanted")
        return watched.faults.empty()

    assert run_ranks(3, watch) == [True] * 3


def test_alone_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "connect_ranks", None)
    threads = threading.active_count()
    with FaultDetector(Alone(), superstep_seconds=0.0) as detector:
        detector.computing(0)
        detector.waiting()
        assert threading.active_count() == threads
    detector.close()


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("no sockets today")


def test_without_a_listening_socket_the_run_goes_on(
    run_ranks: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rendezvous.socket, "create_server", refuse)

    def watch(group: ThreadGroup) -> bool:
        with FaultDetector(group) as detector:
            detector.computing(0)
            group.barrier()
        return True

    with caplog.at_level(logging.WARNING):
        assert run_ranks(3, watch) == [True] * 3
    (warning,) = caplog.messages
    assert warning.startswith("ranks cannot watch each other: rank 0 cannot listen: no sockets today; ")


def test_a_rank_that_cannot_connect_is_left_out(
    run_ranks: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rendezvous, "_PATIENCE_SECONDS", 1.0)
    connect = rendezvous.connect_to_master
    monkeypatch.setattr(
        rendezvous,
        "connect_to_master",
        lambda *args, rank, **given: refuse() if rank == 1 else connect(*args, rank=rank, **given),
    )

    def watch(group: ThreadGroup) -> tuple[int, int | None, str] | None:
        watched = Watched(group)
        with watched.detector as detector:
            detector.computing(2)
            group.barrier()
            if group.rank == 2:
                cut(detector)
            return watched.fault() if group.rank == 0 else None

    with caplog.at_level(logging.WARNING):
        assert run_ranks(3, watch)[0] == (2, 2, "died")
    (warning,) = caplog.messages
    assert "rank 1 cannot connect with rank 0: no sockets today" in warning


TOKEN = bytes(range(64))


def test_only_ranks_with_the_token_are_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        accepted: list[dict[int, socket.socket]] = []
        thread = threading.Thread(target=lambda: accepted.append(accept_ranks(listener, TOKEN, 3)))
        thread.start()
        one, three = (rank.to_bytes(4, "big") for rank in (1, 3))
        for hello in (b"\x00" * 32 + one, TOKEN[:31] + one, TOKEN[32:] + one, TOKEN[:32] + three, b"GET /"):
            with socket.create_connection(address, timeout=SECONDS) as stranger:
                stranger.sendall(hello)
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(64) == b"", hello
        with connect_to_master(["127.0.0.1"], address[1], TOKEN, rank=1):
            with socket.create_connection(address, timeout=SECONDS) as twice:
                twice.sendall(TOKEN[:32] + one)
                assert twice.recv(64) == b""
            with connect_to_master(["127.0.0.1"], address[1], TOKEN, rank=2):
                thread.join(SECONDS)
        assert [sorted(found) for found in accepted] == [[1, 2]]
        for connection in accepted[0].values():
            connection.close()


def test_silent_strangers_cost_the_ranks_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "_PATIENCE_SECONDS", LONG)
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as opened:
        address = listener.getsockname()
        strangers = [opened.enter_context(socket.create_connection(address, SECONDS)) for _ in range(SECONDS)]
        strangers[1].sendall(TOKEN[:31])
        accepted: list[dict[int, socket.socket]] = []
        thread = threading.Thread(
            target=lambda: accepted.append(accept_ranks(listener, TOKEN, 2)), daemon=True
        )
        thread.start()
        with socket.create_connection(address, SECONDS) as rank:
            for part in (TOKEN[:20], TOKEN[20:32] + bytes(3), b"\x01"):  # as TCP may deliver it
                rank.sendall(part)
                time.sleep(0.01)
            assert rank.recv(64) == TOKEN[32:]
            thread.join(SECONDS)
            assert [sorted(found) for found in accepted] == [[1]]
            assert [stranger.recv(1) for stranger in strangers] == [b""] * SECONDS
            accepted[0][1].close()


@pytest.mark.parametrize("answer", [b"\x00" * 32, b"", None])
def test_a_stranger_who_answers_is_not_the_master(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendezvous, "_PATIENCE_SECONDS", 0.5)
    done = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(64)
            if answer is None:
                done.wait(SECONDS)
            else:
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port}: "):
            connect_to_master(["127.0.0.1"], port, TOKEN, rank=1)
        done.set()
        thread.join(SECONDS)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault(3, "n17", 41, "died"), "rank 3 on host n17 died in superstep 41"),
        (Fault(0, "a", None, "died"), "rank 0 on host a died before superstep 0"),
        (
            Fault(1, "a", 0, "is silent", 10.25),
            "rank 1 on host a is silent in superstep 0: no heartbeat for 10.2 s",
        ),
        (
            Fault(1, "a", 2, "hangs", 61.0),
            "rank 1 on host a hangs in superstep 2: it has computed for 61.0 s",
        ),
        (
            Fault(1, "a", 2, "failed", 10.0),
            "rank 1 on host a failed in superstep 2: it left 10.0 s ago, and the others wait for it",
        ),
    ],
)
def test_a_fault_in_words(fault: Fault, text: str) -> None:
    assert str(fault) == text
    assert fault.describe(None) == f"{text}. No log was written."
    assert fault.describe("log/40") == f"{text}. The last log is log/40: continue with --resume"


@pytest.mark.mpi
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("stop", r"rank {} on host \S+ is silent in superstep 5: no heartbeat for \d+\.\d s"),
        ("hang", r"rank {} on host \S+ hangs in superstep 5: it has computed for \d+\.\d s"),
        ("raise and catch", r"rank {} on host \S+ failed in superstep 5: it left \d+\.\d s ago, and .*"),
    ],
)
def test_a_lost_rank_is_named_once_and_all_end(
    way: str, text: str, victim: int, mpirun: str, tmp_path: Path
) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, way, victim))
    assert code == 1, err
    assert "after the run" not in out
    (line,) = faults_in(err)
    assert re.fullmatch(text.format(victim) + r"\. The last log is log/4: continue with --resume", line)
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
def test_where_the_rank_that_reports_first_is_lost_too_another_ends_all(mpirun: str, tmp_path: Path) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, "stop", 0, 1))
    assert code == 1, err
    assert "after the run" not in out
    (line,) = faults_in(err)
    assert re.match(r"rank 0 on host \S+ is silent in superstep 5", line)
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("way", ["kill", "kill without report"])
def test_a_killed_rank_ends_all_and_is_named(way: str, victim: int, mpirun: str, tmp_path: Path) -> None:
    code, out, err = end_of(start(mpirun, tmp_path, way, victim))
    assert code != 0
    assert "after the run" not in out
    # The watchdog reports too where the launcher ends a rank between its report and the event that says so. It has
    # rank 0's superstep, for which the last barrier may not have ended yet.
    reports = faults_in(err)
    assert reports, err
    assert way == "kill" or len(reports) == 1
    for line in reports:
        assert re.match(rf"rank {victim} on host \S+ died in superstep [45]\. ", line), line
    wait_until_gone(pids(tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize("victim", [0, 2])
def test_an_exception_is_reported_by_its_rank_alone(victim: int, mpirun: str, tmp_path: Path) -> None:
    code, _, err = end_of(start(mpirun, tmp_path, "raise", victim))
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
