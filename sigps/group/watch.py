"""How the ranks of a group come to be watched, from `world()` to the end of their processes."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import json
import logging
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigps.errors import ConfigError
from sigps.group.interfaces import Host, Interface, choose_address, find_host
from sigps.group.ranks import Group
from sigps.group.rendezvous import connect_ranks
from sigps.group.status import Status
from sigps.group.watchdog import PROGRAM, READY, process_state

__all__ = ["listening_address", "start_watch"]

log = logging.getLogger(__name__)

_START_SECONDS = 60.0
_STATUS_FILE = "sigps status"


def start_watch(group: Group) -> None:
    """Start this rank's watchdog process and connect it with those of the others. Collective.

    Where ranks cannot connect, rank 0 logs a warning and the job goes on, watched by the launcher alone.

    Raises:
        ConfigError: If there is no address on which rank 0 is to listen.
    """
    with _limited(_START_SECONDS):
        _start(group)


def _start(group: Group) -> None:
    hosts, address = listening_address(group)
    peers, problem = connect_ranks(group, address)
    lives, no_lives = connect_ranks(group, address)
    with contextlib.ExitStack() as opened:
        own, other = socket.socketpair()
        for end in (own, other, *peers.values(), *lives.values()):
            opened.enter_context(end)
        statuses = {group.rank: os.memfd_create(_STATUS_FILE)}
        os.ftruncate(statuses[group.rank], ctypes.sizeof(Status))
        group.status = Status.create(mmap.mmap(statuses[group.rank], 0))
        statuses |= _others_here(group, hosts, statuses[group.rank])
        for file in statuses.values():
            opened.callback(os.close, file)
        arguments = {
            "rank": group.rank,
            "pid": os.getpid(),
            "launcher": os.getppid(),
            "hosts": hosts,
            "statuses": statuses,
            "own": other.fileno(),
            "peers": {rank: peer.fileno() for rank, peer in peers.items()},
            "lives": {rank: life.fileno() for rank, life in lives.items() if not group.rank},
        }
        lives_of_others = lives.values() if group.rank == 0 else ()
        passed = [*statuses.values(), *(end.fileno() for end in (other, *peers.values(), *lives_of_others))]
        try:
            if problem := problem or no_lives:
                raise OSError(problem)
            _start_watchdog(arguments, passed)
            other.close()
            if own.recv(1) != READY:
                raise OSError("the watchdog process did not start")
        except OSError as error:
            problem = str(error)
        problem = next(filter(None, group.all_gather(problem)), "")
        if problem and group.rank == 0:
            log.warning("ranks cannot watch each other: %s; the launcher alone notices a dead rank", problem)
        if problem:
            return
        # Watchdogs notice that the system closes these when this process ends.
        own.setblocking(False)
        group.status.notify = functools.partial(_notify, own.detach())
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            text = os.dup(statuses[group.rank])
            os.lseek(text, Status.signal_text.offset, os.SEEK_SET)  # type: ignore[attr-defined]
            faulthandler.register(signal.SIGTERM, file=text, all_threads=False, chain=True)
        atexit.register(group.status.record_end)
        if group.rank > 0:
            lives[0].detach()


def listening_address(group: Group) -> tuple[list[str], str]:
    """Return the name of each rank's host, [size], and the address on which rank 0 listens. Collective.

    Raises:
        ConfigError: If there is none.
    """
    found = group.all_gather(find_host())
    hosts = [Host(name, tuple(Interface(*i) for i in interfaces)) for name, interfaces in found]
    address, problem = "", ""
    try:
        address = choose_address(hosts) if group.rank == 0 else ""
    except ConfigError as error:
        problem = str(error)
    address, problem = group.broadcast([address, problem])
    if problem:
        raise ConfigError(problem)
    return [host.name for host in hosts], address


def _others_here(group: Group, hosts: list[str], own: int) -> dict[int, int]:
    """Return on rank 0 the files with the statuses of the other ranks of its host; on others none. Collective."""
    files: dict[int, int] = {}
    paths = group.all_gather(f"/proc/{os.getpid()}/fd/{own}")
    for rank in [rank for rank, host in enumerate(hosts) if host == hosts[0] and rank > group.rank == 0]:
        with contextlib.suppress(OSError):
            if _STATUS_FILE in os.readlink(paths[rank]):  # else of another host, although of one name
                files[rank] = os.open(paths[rank], os.O_RDWR | os.O_CLOEXEC)
    return files


def _start_watchdog(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Start the process.

    Raises:
        OSError: If it cannot be started.
    """
    if process_state(os.getpid())[0] == "X":
        raise OSError("/proc does not show processes")
    folder = Path(__file__).parent
    subprocess.Popen(
        [sys.executable, "-ISc", PROGRAM, str(folder.parent), str(folder), json.dumps(arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=descriptors,
        start_new_session=True,
    )


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End this process where the block takes longer: nobody watches yet."""
    limit = threading.Timer(seconds, _give_up, (seconds,))
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def _give_up(seconds: float) -> None:
    text = f"a rank did not come to the start of the job within {seconds:.0f} s: it is stopped, or its host is lost\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
    os._exit(1)


def _notify(own: int) -> None:
    with contextlib.suppress(OSError):
        os.write(own, b"!")
