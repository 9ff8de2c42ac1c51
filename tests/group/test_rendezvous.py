"""How rank 0 and the others connect: by a token that strangers lack."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from sigps.group import rendezvous
from sigps.group.rendezvous import accept_ranks, connect_to_master

SECONDS = 60
LONG = 3600.0
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
        with connect_to_master("127.0.0.1", address[1], TOKEN, rank=1):
            with socket.create_connection(address, timeout=SECONDS) as twice:
                twice.sendall(TOKEN[:32] + one)
                assert twice.recv(64) == b""
            with connect_to_master("127.0.0.1", address[1], TOKEN, rank=2):
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
            connect_to_master("127.0.0.1", port, TOKEN, rank=1)
        done.set()
        thread.join(SECONDS)
