"""GPUs that write into each other's memory, without a GPU: ranks are threads, and all their memory is this process's.

On the ground of `host_gpu`, whose plain schedule runs a superstep of each rank; here records go to the ghosts of other
ranks, and counters are added up, as `halo.cuh` does it.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import host_gpu
import numpy as np
import pytest
from host_gpu import Pointer, _at, _LeaseKernel

from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.device import peer_memory
from sigps.engine.gpu import peers
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.launch import MEDIUM, NO_CLUSTER
from sigps.engine.gpu.peer_buffers import PeerBuffers
from sigps.engine.gpu.variant import LeaseForm, Variant
from sigps.kernels.cuda.lease import (
    CONTROL,
    FAULTED,
    FINISHED,
    NO_VERTEX,
    PEER,
    PUBLISHING,
    RUNNING,
    STATS,
    WHOLE,
)
from sigps.system import transport

__all__ = ["use_host_as_peers"]


def use_host_as_peers(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let `device="cuda"` be this process, for `size` ranks that are threads and reach each other's memory.

    Args:
        monkeypatch: Takes it back.
        size: How many ranks meet.
    """
    host_gpu.use_host_as_gpu(monkeypatch)
    meeting = _Meeting(size)
    monkeypatch.setattr(transport, "reason_against_peers", lambda ranks: "")
    monkeypatch.setattr(peer_memory, "allocate", _Buffer)
    monkeypatch.setattr(peer_memory, "handle_of", _handle_of)
    monkeypatch.setattr(peer_memory, "Opened", _opened)
    monkeypatch.setattr(peers, "peer_buffers", lambda exchange, purpose="run": PeerBuffers())

    def load(program: Any, columns: Any, narrow: bool, gpu: Any, form: LeaseForm) -> Variant:
        assert form.has_peers
        compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=gpu.arch)
        kernel: Any = _PeerLease(program, dict(columns), narrow, meeting)
        return Variant(compiled, kernel, MEDIUM, None, NO_CLUSTER, 1, 0)

    monkeypatch.setattr(gpu_variant, "load_variant", load)


class _Buffer:
    """What `peer_memory.allocate` returns, as far as a run asks for it."""

    def __init__(self, num_bytes: int) -> None:
        self.nbytes = num_bytes
        self.data = Pointer(np.zeros(num_bytes, np.uint8))

    def __getitem__(self, part: slice) -> Any:
        return self.data.memory.view(host_gpu.Array)[part]


def _handle_of(buffer: _Buffer) -> Any:
    return np.full(8, buffer.data.ptr, dtype=np.int64)


def _opened(handle: Any) -> Any:
    return SimpleNamespace(address=int(handle[0]), close=lambda: None)


class _Meeting:
    """Numbers of all ranks, of each the same count, between two barriers."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=300)
        self._rows: dict[int, list[int]] = {}

    def sum(self, rank: int, numbers: list[int]) -> list[int]:
        self._barrier.wait()
        self._rows[rank] = numbers
        self._barrier.wait()
        return np.sum(list(self._rows.values()), axis=0).tolist()


class _PeerLease(_LeaseKernel):
    """A lease of records, one superstep after another on all ranks; what is added up are integers."""

    def __init__(self, program: Any, columns: dict[str, Any], narrow: bool, meeting: _Meeting) -> None:
        super().__init__(program, columns, narrow)
        assert not program.aggregators
        self._meeting = meeting

    def launch(self, blocks: int, threads: int, parameters: Any, **_: Any) -> None:
        (lease,) = parameters
        control = _at(lease["control"], CONTROL, 1)[0]
        control["num_stats"] = 0
        plan, rank = control["next"], int(lease["halo"]["rank"])
        while plan["ending"] == RUNNING and plan["superstep"] < lease["end"]:
            number, before = int(plan["superstep"]), int(control["num_stats"])
            is_publishing = plan["remaining"] == PUBLISHING
            if is_publishing:
                done = control["counters"]
                mine = [1, int(done["active"]), int(done["sent_edges"]), 0]
                plan["superstep"], plan["remaining"] = number + 1, WHOLE
            else:
                lease["counts_idle"] = 1  # another rank may not be idle
                self._superstep(lease, control)
                row = _at(lease["stats"], STATS, before + 1)[before]
                status = _at(lease["status"], np.uint8, int(lease["num_owned"]))
                mine = [int(row["ran"]), int((status == 0).sum()), int(row["messages"])]
                mine.append(int(plan["ending"] == FAULTED))
            ran, active, messages, faults = self._meeting.sum(
                rank, mine
            )  # nobody reads or clears bits any more
            assert not faults
            self._publish(lease, (number + 1) & 1)
            self._meeting.sum(rank, [0])
            plan["ending"] = FINISHED if ran == 0 or (active == 0 and messages == 0) else RUNNING
            if not is_publishing:
                row["ran"], row["messages"] = ran, messages
                control["num_stats"] = before + (ran > 0)
                plan["superstep"] = number + (ran > 0)

    def _publish(self, lease: Any, parity: int) -> None:
        """Write the bits and records of owned vertices into the memory of those that have them as ghosts."""
        halo, size = lease["halo"], self._layout.record.structure.itemsize
        ranks, n = int(halo["num_ranks"]), int(lease["num_lids"])
        bounds = _at(halo["bounds"], np.uint32, ranks + 1).tolist()
        vertices = _at(halo["vertices"], np.uint32, bounds[-1])
        own = _at(lease["sent"][parity], np.uint32, -(-n // 32))
        records = _at(lease["records"][parity], np.uint8, n * size).reshape(n, size)
        for rank, peer in enumerate(_at(halo["peers"], PEER, ranks)):
            for slot in range(bounds[rank], bounds[rank + 1]):
                v, i = int(vertices[slot]), slot - bounds[rank]
                hot = int(peer["num_hot"])
                lid = int(peer["first_hot"]) + i if i < hot else int(peer["first_cold"]) + i - hot
                word = _at(int(peer["sent"][parity]) + lid // 32 * 4, np.uint32, 1)
                bit = np.uint32(1 << lid % 32)
                word &= ~bit
                if v != NO_VERTEX and own[v // 32] >> np.uint32(v % 32) & 1:
                    word |= bit
                    if size:
                        _at(int(peer["records"][parity]) + lid * size, np.uint8, size)[:] = records[v]
