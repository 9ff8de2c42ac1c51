"""The address on which rank 0 listens for the others: one network of the hosts, never all interfaces.

Ranks say which addresses their hosts have. On one host rank 0 listens on the loopback; else on its address in a network
that it shares with the others, or from which its packets to them leave; or where `SIGPS_INTERFACE` says.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import ipaddress
import os
import platform
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sigps.errors import ConfigError

__all__ = ["VARIABLE", "Host", "Interface", "choose_address", "find_host", "route_to"]

VARIABLE = "SIGPS_INTERFACE"

_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B


class Interface(NamedTuple):
    """A network interface: its name, and its address in the network, such as 10.0.0.5/24."""

    name: str
    address: str

    @property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Interface(self.address).network

    @property
    def ip(self) -> str:
        return str(ipaddress.IPv4Interface(self.address).ip)


class Host(NamedTuple):
    """A rank's host: its name, and its interfaces but the loopback."""

    name: str
    interfaces: tuple[Interface, ...]


def find_host() -> Host:
    """Return this process's host."""
    return Host(platform.node(), tuple(_interfaces()))


def _interfaces() -> Iterator[Interface]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # no IPv4 address
                request = struct.pack("256s", name.encode()[:15])
                ip, mask = (
                    socket.inet_ntoa(fcntl.ioctl(asked, what, request)[20:24])
                    for what in (_SIOCGIFADDR, _SIOCGIFNETMASK)
                )
                found = ipaddress.IPv4Interface(f"{ip}/{mask}")
                if not found.is_loopback:
                    yield Interface(name, str(found))


def route_to(address: str) -> str | None:
    """Return the address from which packets to another leave this host; None where there is no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((address, 9))  # UDP: chooses a route and sends nothing
        return str(probe.getsockname()[0])
    return None


def choose_address(
    hosts: Sequence[Host],
    environment: Mapping[str, str] = os.environ,
    route: Callable[[str], str | None] = route_to,
) -> str:
    """Return the address on which rank 0 listens; called there.

    Args:
        hosts: Each rank's, [size].
        environment: The variables of rank 0: `SIGPS_INTERFACE` is an interface, an address or a network of its host.
        route: As `route_to`.

    Raises:
        ConfigError: If the host has no such interface, or none that leads to the others.
    """
    own = hosts[0]
    if asked := environment.get(VARIABLE):
        return _asked(own, asked)
    if len(set(hosts)) == 1:
        return "127.0.0.1"
    others = [host for host in dict.fromkeys(hosts) if host != own]
    # An address that several hosts have, as of a bridge for containers, leads to none of them.
    counts = collections.Counter(i.ip for host in (own, *others) for i in host.interfaces)
    choices = collections.Counter[str]()
    for host in others:
        theirs = [i for i in host.interfaces if counts[i.ip] == 1]
        shared = [
            o.ip for o in own.interfaces for i in theirs if counts[o.ip] == 1 and o.network == i.network
        ]
        routed = [source for i in theirs if (source := route(i.ip)) in {o.ip for o in own.interfaces}]
        choices.update(set(shared or routed[:1]))
    if not choices:
        there = "; ".join(_described(host) for host in (own, *others))
        raise ConfigError(
            f"no network leads from rank 0 to the other hosts ({there}): name one with {VARIABLE}"
        )
    most = max(choices.values())
    return next(interface.ip for interface in own.interfaces if choices[interface.ip] == most)


def _asked(own: Host, asked: str) -> str:
    for interface in own.interfaces:
        if asked in (interface.name, interface.ip):
            return interface.ip
        with contextlib.suppress(ValueError):
            if "/" in asked and ipaddress.IPv4Address(interface.ip) in ipaddress.IPv4Network(
                asked, strict=False
            ):
                return interface.ip
    raise ConfigError(
        f"{VARIABLE}={asked}: rank 0's host has no such interface, address or network. It is {_described(own)}"
    )


def _described(host: Host) -> str:
    found = ", ".join(f"{i.name} {i.address}" for i in host.interfaces) or "without an IPv4 address"
    return f"{host.name}: {found}"
