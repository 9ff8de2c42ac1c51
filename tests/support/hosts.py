"""Several hosts on one machine: network and host name namespaces joined by a bridge, for root where Linux allows them.

Each host has `eth0` (10.77.0.N) and `eth1` (10.78.0.N), in two networks with all others, and `docker0`, with an address
that all have. They share the file system but for `private`, which is another folder on each.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from places import REPOSITORY, SUPPORT
from processes import Outcome, end_of

ENTER = """#!/bin/sh
# enter HOST COMMAND...: what a launcher calls in the place of ssh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" unshare --uts --mount sh -c '
    hostname "$0" && mount --bind {root}/hosts /etc/hosts && mount --bind "{root}/private-$0" {root}/private || exit 1
    eval "$@"' "$host" "$@"
"""


class Hosts:
    """Hosts that exist until `close`; the folder is that of their files."""

    def __init__(self, folder: Path, mpirun: str, num_hosts: int) -> None:
        self.folder, self._mpirun = folder, mpirun
        self.names = [f"sigps{os.getpid()}-{letter}" for letter in "abcd"[:num_hosts]]
        self._switch = f"sigps{os.getpid()}-switch"
        self.private = folder / "private"
        self.private.mkdir()
        lines = [f"10.77.0.{i} {name}" for i, name in enumerate(self.names, 1)]
        (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        self._enter = folder / "enter"
        self._enter.write_text(ENTER.format(root=folder))
        self._enter.chmod(0o755)

    def open(self) -> None:
        """Make the namespaces.

        Raises:
            OSError: If they are not allowed here.
        """
        for name in (*self.names, self._switch):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        for network in range(2):
            _ip("-n", self._switch, "link", "add", f"net{network}", "type", "bridge")
            _ip("-n", self._switch, "link", "set", f"net{network}", "up")
        for i, name in enumerate(self.names, 1):
            (self.folder / f"private-{name}").mkdir()
            for network in range(2):
                port, device = f"h{i}n{network}", f"eth{network}"
                end = ("type", "veth", "peer", "name", device, "netns", name)
                _ip("-n", self._switch, "link", "add", port, *end)
                _ip("-n", self._switch, "link", "set", port, "master", f"net{network}", "up")
                _ip("-n", name, "addr", "add", f"10.{77 + network}.0.{i}/24", "dev", device)
                _ip("-n", name, "link", "set", device, "up")
            _ip("-n", name, "link", "add", "docker0", "type", "bridge")
            _ip("-n", name, "addr", "add", "172.17.0.1/16", "dev", "docker0")
            _ip("-n", name, "link", "set", "docker0", "up")

    def close(self) -> None:
        for name in (*self.names, self._switch):
            with contextlib.suppress(OSError):
                _ip("netns", "del", name)

    def cut(self, host: int) -> None:
        """Take down the links of a host."""
        for network in range(2):
            _ip("-n", self._switch, "link", "set", f"h{host + 1}n{network}", "down")

    def start(self, ranks: int, command: Sequence[object], **environment: str) -> subprocess.Popen[str]:
        """Start ranks on the hosts in turn, by a launcher on the first."""
        launch = [self._mpirun, "-launcher", "ssh", "-launcher-exec", str(self._enter)]
        words = [
            *launch,
            "-hosts",
            ",".join(self.names),
            "-n",
            str(ranks),
            sys.executable,
            *map(str, command),
        ]
        return subprocess.Popen(
            [str(self._enter), self.names[0], *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(SUPPORT)]), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, ranks: int, *command: object, **environment: str) -> Outcome:
        return end_of(self.start(ranks, command, **environment))


@contextlib.contextmanager
def made_hosts(folder: Path, mpirun: str, num_hosts: int) -> Iterator[Hosts]:
    """Make hosts, or skip where that is not possible; says why."""
    if shutil.which("ip") is None:
        pytest.skip("no `ip`: install iproute2")
    if os.geteuid() != 0:
        pytest.skip("namespaces of networks and host names need root")
    hosts = Hosts(folder, mpirun, num_hosts)
    try:
        try:
            hosts.open()
        except OSError as error:
            pytest.skip(f"no namespaces here: {error}")
        yield hosts
    finally:
        hosts.close()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
