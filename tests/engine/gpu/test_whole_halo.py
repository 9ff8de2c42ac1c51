"""Halos that cross as a whole, and as what was sent, give the interpreter's results; GPUs are this process's memory."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")

import host_gpu
from battery import BATTERY
from equality_programs import program_for
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from ways import Way, assert_same

from sigps import Result, run
from sigps.engine.gpu import whole_halo


@pytest.mark.parametrize(
    ("name", "always_bytes"),
    in_turn(["pagerank", "bfs", "wcc", "coreness", "sssp", "pagerank"], [1 << 30, -1]),
)
def test_ranks_agree(name: str, always_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch, has_nccl=True)
    monkeypatch.setattr(whole_halo, "_ALWAYS_BYTES", always_bytes)
    exchanged: list[int] = []
    plain = whole_halo.WholeHalo.exchange
    monkeypatch.setattr(
        whole_halo.WholeHalo, "exchange", lambda self, parity: exchanged.append(parity) or plain(self, parity)
    )
    program, sample = program_for(name, "skewed"), BATTERY["skewed"]
    way = Way(3, device="cuda", partitioner="hash")

    def on_rank(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), transport="nccl", **way.options())

    judge = run(program, sample.build(), device="python")
    results = run_ranks(3, on_rank)
    assert exchanged
    assert_same(results[0], judge, exact=False)
