"""On which address rank 0 listens, as a table of what hosts have."""

from __future__ import annotations

import pytest

from sigps.errors import ConfigError
from sigps.group.interfaces import Host, Interface, choose_address, find_host, route_to


def host(name: str, **addresses: str) -> Host:
    return Host(name, tuple(Interface(*item) for item in addresses.items()))


DOCKER = "172.17.0.1/16"
A = host("a", docker0=DOCKER, eth0="10.0.0.1/24", ib0="10.9.0.1/16")
B = host("b", docker0=DOCKER, eth0="10.0.0.2/24", ib0="10.9.0.2/16")
BY_CABLE = host("c", docker0=DOCKER, ib0="10.9.0.3/16")
ELSEWHERE = host("d", docker0=DOCKER, eth0="192.168.7.1/24")
ROUTES = {"192.168.7.1": "10.9.0.1"}


@pytest.mark.parametrize(
    ("hosts", "asked", "address"),
    [
        ([A, A, A], "", "127.0.0.1"),
        ([A, B, A], "", "10.0.0.1"),
        ([A, B, BY_CABLE], "", "10.9.0.1"),  # what leads to most
        ([A, ELSEWHERE], "", "10.9.0.1"),  # by its route
        ([A, B], "ib0", "10.9.0.1"),
        ([A, B], "10.9.0.1", "10.9.0.1"),
        ([A, B], "10.9.0.0/16", "10.9.0.1"),
        (
            [host("n", eth0="10.0.0.1/24"), host("n", eth0="10.0.0.2/24")],
            "",
            "10.0.0.1",
        ),  # two hosts of one name
    ],
)
def test_the_address_on_which_rank_0_listens(hosts: list[Host], asked: str, address: str) -> None:
    assert choose_address(hosts, {"SIGPS_INTERFACE": asked}, ROUTES.get) == address


@pytest.mark.parametrize(
    ("hosts", "asked", "text"),
    [
        (
            [A, B],
            "eth7",
            r"SIGPS_INTERFACE=eth7: rank 0's host has no such interface.* It is a: docker0 172.*, ib0 10",
        ),
        ([A, B], "10.0.1.0/24", "no such interface, address or network"),
        ([A, host("e", docker0=DOCKER)], "", r"no network leads from rank 0 .*\(a: .*; e: .*\): name one"),
        ([A, host("e")], "", "e: without an IPv4 address"),
    ],
)
def test_where_there_is_none(hosts: list[Host], asked: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        choose_address(hosts, {"SIGPS_INTERFACE": asked}, ROUTES.get)


def test_this_host() -> None:
    assert all(not interface.ip.startswith("127.") for interface in find_host().interfaces)
    assert route_to("127.0.0.1") == "127.0.0.1"
