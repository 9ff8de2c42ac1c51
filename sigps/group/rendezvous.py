"""How rank 0 connects with each other rank over TCP: it listens, and accepts those that send the token."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import socket
import time

from sigps.group.ranks import Group

__all__ = ["TOKEN_BYTES", "accept_ranks", "connect_ranks", "connect_to_master"]

TOKEN_BYTES = 32
"""Bytes of a token's first half, which a rank sends, and of its second, with which rank 0 answers."""

_PATIENCE_SECONDS = 5.0


def connect_ranks(group: Group, address: str) -> tuple[dict[int, socket.socket], str]:
    """Connect rank 0, which listens on this address of its host, with the others. Collective.

    Returns:
        This rank's sockets by the other end's rank, and what failed on any rank; empty where nothing did.
    """
    listening, problem, sockets = None, "", dict[int, socket.socket]()
    with contextlib.ExitStack() as opened:
        try:
            if group.rank == 0:
                listener = opened.enter_context(socket.create_server((address, 0), backlog=group.size))
                token, port = secrets.token_bytes(2 * TOKEN_BYTES), listener.getsockname()[1]
                listening = {"address": address, "port": port, "token": token}
        except OSError as error:
            problem = f"rank 0 cannot listen on {address}: {error}"
        listening = group.broadcast(listening)
        try:
            if listening is not None and group.rank == 0:
                sockets = accept_ranks(listener, listening["token"], group.size)
            elif listening is not None:
                sockets = {0: connect_to_master(**listening, rank=group.rank)}
        except OSError as error:
            problem = f"rank {group.rank} cannot connect with rank 0: {error}"
        problems = group.all_gather(problem)
    for rank in [rank for rank in sockets if problems[rank]]:
        sockets.pop(rank).close()  # accepted after that rank's time was over
    return sockets, next(filter(None, problems), "")


def accept_ranks(listener: socket.socket, token: bytes, size: int) -> dict[int, socket.socket]:
    """Accept connections that send the token, until ranks 1 to `size` - 1 are connected or the time is over.

    All are read beside each other: a stranger who sends nothing costs the ranks no time.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    accepted: dict[int, socket.socket] = {}
    listener.setblocking(False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        while len(accepted) < size - 1 and (left := deadline - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                if key.fileobj is listener:
                    with contextlib.suppress(OSError):
                        connection = listener.accept()[0]
                        connection.setblocking(False)
                        waiting.register(connection, selectors.EVENT_READ, (connection, bytearray()))
                    continue
                connection, hello = key.data
                if (rank := _rank_of(connection, hello, token)) is None:
                    continue
                waiting.unregister(connection)
                if 0 < rank < size and rank not in accepted and _answer(connection, token):
                    accepted[rank] = connection
                else:
                    connection.close()
        for key in waiting.get_map().values():
            if key.data is not None:
                key.data[0].close()
    return accepted


def _rank_of(connection: socket.socket, hello: bytearray, token: bytes) -> int | None:
    """Add to a hello what has arrived; return its rank, 0 for a stranger, None where more must arrive."""
    num_bytes = TOKEN_BYTES + 4
    try:
        arrived = connection.recv(num_bytes - len(hello))
    except OSError:
        return 0
    hello += arrived
    if arrived and len(hello) < num_bytes:
        return None
    is_known = len(hello) == num_bytes and hmac.compare_digest(hello[:TOKEN_BYTES], token[:TOKEN_BYTES])
    return int.from_bytes(hello[TOKEN_BYTES:], "big") if is_known else 0


def _answer(connection: socket.socket, token: bytes) -> bool:
    """Send the token's second half; return whether the other end is still there."""
    try:
        connection.sendall(token[TOKEN_BYTES:])
    except OSError:
        return False
    return True


def connect_to_master(address: str, port: int, token: bytes, rank: int) -> socket.socket:
    """Connect with rank 0, which answers with the token's second half.

    Raises:
        OSError: If it does not within the time.
    """
    try:
        with contextlib.ExitStack() as refused:
            connection = refused.enter_context(socket.create_connection((address, port), _PATIENCE_SECONDS))
            connection.sendall(token[:TOKEN_BYTES] + rank.to_bytes(4, "big"))
            if hmac.compare_digest(connection.recv(TOKEN_BYTES), token[TOKEN_BYTES:]):
                refused.pop_all()
                return connection
            raise ConnectionRefusedError("no answer, or one without the token")
    except OSError as error:
        raise OSError(f"{address}:{port}: {error}") from None
