"""How the ranks of a run find each other over TCP: rank 0 listens, and whoever knows the token is let in."""

from __future__ import annotations

import contextlib
import hmac
import socket
import time
from collections.abc import Sequence

__all__ = ["TOKEN_BYTES", "accept_ranks", "addresses_of", "connect_to_master"]

TOKEN_BYTES = 32
"""What a rank shows, and as much again that it is shown."""

_PATIENCE_SECONDS = 5.0


def addresses_of(hosts: Sequence[str]) -> list[str]:
    """Return where to find rank 0: on the one host there is, or by its routed address, or by name."""
    if len(set(hosts)) == 1:
        return ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("10.255.255.255", 9))  # UDP: chooses a route and sends nothing
        return [probe.getsockname()[0], hosts[0]]
    return [hosts[0]]


def accept_ranks(listener: socket.socket, token: bytes, size: int) -> dict[int, socket.socket]:
    """Accept connections that show the token until all ranks but 0 are there or the time is over."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    accepted: dict[int, socket.socket] = {}
    while len(accepted) < size - 1 and (left := deadline - time.monotonic()) > 0:
        with contextlib.suppress(OSError), contextlib.ExitStack() as refused:
            listener.settimeout(left)
            connection = refused.enter_context(listener.accept()[0])
            connection.settimeout(min(1.0, left))
            hello = connection.recv(TOKEN_BYTES + 4)
            is_known = hmac.compare_digest(hello[:TOKEN_BYTES], token[:TOKEN_BYTES])
            rank = int.from_bytes(hello[TOKEN_BYTES:], "big")
            if is_known and rank not in accepted and 0 < rank < size:
                connection.sendall(token[TOKEN_BYTES:])
                accepted[rank] = connection
                refused.pop_all()
    return accepted


def connect_to_master(addresses: Sequence[str], port: int, token: bytes, rank: int) -> socket.socket:
    """Connect with rank 0 at the first address where somebody answers who knows the token.

    Raises:
        OSError: If there is none within the time.
    """
    problems = []
    for address in addresses:
        try:
            with contextlib.ExitStack() as refused:
                seconds = _PATIENCE_SECONDS / len(addresses)
                connection = refused.enter_context(socket.create_connection((address, port), timeout=seconds))
                connection.sendall(token[:TOKEN_BYTES] + rank.to_bytes(4, "big"))
                if hmac.compare_digest(connection.recv(TOKEN_BYTES), token[TOKEN_BYTES:]):
                    refused.pop_all()
                    return connection
                raise ConnectionRefusedError("no answer, or one without the token")
        except OSError as error:
            problems.append(f"{address}:{port}: {error}")
    raise OSError("; ".join(problems))
