"""Memory that ranks open for each other: made together, kept, and closed before it is freed. Devices are pretended."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps.apps import BFS
from sigps.device import peer_memory
from sigps.engine.gpu import peer_buffers as peer_windows
from sigps.engine.gpu.peer_buffers import PeerBuffers, peer_buffers
from sigps.errors import DeviceError


class Pretended:
    """Windows by their handles, and what happened to them, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int = 1 << 20) -> None:
        self.events: list[tuple[str, int]] = []
        self._numbers = itertools.count(1)
        self._room = room
        monkeypatch.setattr(peer_memory, "allocate", self.allocate)
        monkeypatch.setattr(peer_memory, "handle_of", lambda w: np.full(8, w.number, dtype=np.int64))
        monkeypatch.setattr(peer_memory, "Opened", self.open)
        monkeypatch.setattr(peer_windows, "check_fits", self.check)

    def check(self, needed: dict[str, int]) -> None:
        if sum(needed.values()) > self._room:
            raise DeviceError("no room", rank=0)

    def allocate(self, num_bytes: int) -> Any:
        number = next(self._numbers)
        self.events.append(("made", number))
        return SimpleNamespace(nbytes=num_bytes, number=number, data=SimpleNamespace(ptr=1000 * number))

    def open(self, handle: NDArray[np.int64]) -> Any:
        number = int(handle[0])
        self.events.append(("opened", number))
        close = lambda: self.events.append(("closed", number))  # noqa: E731
        return SimpleNamespace(address=1000 * number + 1, close=close)


class Meeting:
    """The one verb of an exchange that is needed."""

    def __init__(self, group: ThreadGroup) -> None:
        self.rank, self.size, self._group = group.rank, group.size, group

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self._group.all_gather_array(values))


def made(sizes: list[list[int]]) -> list[list[list[int]]]:
    """Let each rank ask for so many bytes in turn; return the addresses that it saw after each."""

    def ask(group: ThreadGroup) -> list[list[int]]:
        windows, seen = PeerBuffers(), []
        for num_bytes in sizes[group.rank]:
            windows.make(num_bytes, Meeting(group), lambda: None)  # type: ignore[arg-type]
            assert windows.own.nbytes >= num_bytes
            seen.append(list(windows.addresses))
        return seen

    return run_ranks(len(sizes), ask)


def test_everybody_sees_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended = Pretended(monkeypatch)
    found = [seen[0] for seen in made([[10], [20], [30]])]
    owners = [addresses[rank] // 1000 for rank, addresses in enumerate(found)]
    assert sorted(owners) == [1, 2, 3]
    for rank, addresses in enumerate(found):
        assert addresses == [1000 * owner + (r != rank) for r, owner in enumerate(owners)]
    assert [what for what, _ in pretended.events].count("opened") == 6


def test_what_is_large_enough_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended = Pretended(monkeypatch)
    for seen in made([[100, 50, 100], [10, 10, 7]]):
        assert seen[0] == seen[1] == seen[2]
    assert [what for what, _ in pretended.events].count("made") == 2


def test_one_that_needs_more_makes_all_anew_once_all_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended = Pretended(monkeypatch)
    for seen in made([[100, 100], [10, 11]]):
        assert not set(seen[0]) & set(seen[1])
    events = [what for what, _ in pretended.events]
    assert events.count("made") == 4
    assert max(i for i, what in enumerate(events) if what == "closed") < events.index("made", 4)


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Pretended(monkeypatch, room=99)
    with pytest.raises(DeviceError, match="no room"):
        made([[100], [100]])


def test_what_does_not_fit_one_is_refused_by_all_and_room_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended = Pretended(monkeypatch, room=99)

    def ask(group: ThreadGroup) -> list[int]:
        windows, meeting = PeerBuffers(), Meeting(group)
        with pytest.raises(DeviceError) as refused:
            windows.make([10, 100, 10][group.rank], meeting, lambda: None)  # type: ignore[arg-type]
        assert (windows.own, windows.addresses) == (None, [])
        assert ("no room" in str(refused.value)) == (group.rank == 1)
        windows.make(10, meeting, lambda: None)  # type: ignore[arg-type]
        return windows.addresses

    assert [len(set(addresses)) for addresses in run_ranks(3, ask)] == [3, 3, 3]
    assert [what for what, _ in pretended.events].count("made") == 2 + 3


@pytest.mark.parametrize("is_there", [True, False])
def test_what_one_cannot_take_beside_is_refused_by_all(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pretended(monkeypatch)

    def ask(group: ThreadGroup) -> str:
        windows, meeting = PeerBuffers(), Meeting(group)

        def take() -> str:
            if group.rank == 1:
                raise DeviceError("no room beside", rank=1)
            return "taken"

        if is_there:
            assert windows.make(10, meeting, lambda: group.rank) == group.rank  # type: ignore[arg-type]
        with pytest.raises(DeviceError) as refused:
            windows.make(10, meeting, take)  # type: ignore[arg-type]
        assert ("no room beside" in str(refused.value)) == (group.rank == 1)
        assert (windows.own is not None) == is_there
        return str(refused.value)

    assert all("rank 1" in told for told in run_ranks(3, ask))


def test_a_run_that_one_rank_has_no_room_for_is_refused_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from host_peers import use_host_as_peers

    from sigps.engine.gpu import run_memory

    use_host_as_peers(monkeypatch, 2)
    is_second = threading.local()

    def check_fits(needed: dict[str, int]) -> None:
        if getattr(is_second, "value", False) and "state fields" in needed:
            raise DeviceError("no room for fields", rank=1)

    monkeypatch.setattr(run_memory, "check_fits", check_fits)

    def ask(group: ThreadGroup) -> str:
        is_second.value = group.rank == 1
        graph = sigps.generate("path", n=12, group=group)
        with pytest.raises(DeviceError) as refused:
            sigps.run(BFS(source=0), graph, device="cuda", transport="peer")
        return str(refused.value)

    first, second = run_ranks(2, ask)
    assert "rank 1: its GPU has no memory" in first
    assert "no room for fields" in second


@pytest.mark.parametrize("what", ["copies", "arrays"])
def test_direct_messages_that_one_rank_cannot_move_are_refused_by_all(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from host_gpu import use_host_as_gpu

    from sigps.engine.gpu import peers

    use_host_as_gpu(monkeypatch)
    Pretended(monkeypatch)
    monkeypatch.setattr(peers, "direct_arrays", lambda *given: {"direct_kinds": 10, "messages": 10})
    monkeypatch.setattr(peers, "peer_buffers", lambda exchange, purpose: PeerBuffers())
    place = threading.local()

    def fail(failing: str) -> None:
        if place.rank == 1 and failing == what:
            raise DeviceError(f"no room for {what}", rank=1)

    monkeypatch.setattr(peers, "check_fits", lambda needed: fail("arrays"))

    def ask(group: ThreadGroup) -> str:
        place.rank = group.rank
        engine: Any = peers.GpuPeerEngine.__new__(peers.GpuPeerEngine)
        engine._exchange, engine._variant = Meeting(group), SimpleNamespace(compiled=None)
        direct = SimpleNamespace(
            copy_enqueued=lambda: fail("copies"), _widths=dict, _stays=lambda: fail("copies")
        )
        direct.move = lambda capacity, take, *_: take()
        engine._memory = SimpleNamespace(direct=direct)
        engine._sum = lambda value: 3 * value
        with pytest.raises(DeviceError) as refused:
            engine._move_direct(10)
        return str(refused.value)

    found = run_ranks(3, ask)
    assert [f"no room for {what}" in told for told in found] == [False, True, False]
    assert all("rank 1" in told for told in found)


def test_the_same_processes_find_what_they_had() -> None:
    class Told:
        def __init__(self, processes: list[int]) -> None:
            self._processes = processes

        def gather(self, values: NDArray[Any]) -> NDArray[Any]:
            return np.array(self._processes)[:, None]

    first, again, others = (peer_buffers(Told(p)) for p in ([7, 8], [7, 8], [7, 9]))  # type: ignore[arg-type]
    assert first is again
    assert first is not others
