"""Parts whose vertices have other local ids on the GPU than on the host; GPUs are this process's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")

import host_gpu
from battery import BATTERY
from equality_programs import program_for
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from ways import assert_same

from sigps import Checkpoint, Result, run
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu.numbering import Numbering

RANKS = 3


class Renamed(Numbering):
    """Owned vertices of parts in some other order."""

    renamed = 0

    def __init__(self, xp: Any, subgraph: Any, *, spare: Any = ()) -> None:
        super().__init__(xp, subgraph, spare=spare)
        if subgraph.gids is None:
            return
        numbers = np.arange(self.num_lids, dtype=np.uint32)
        np.random.default_rng(self.num_owned).shuffle(numbers[: self.num_owned])
        degrees = np.empty_like(self.in_degrees)
        degrees[numbers[: self.num_owned]] = self.in_degrees
        self.rename(xp.asarray(numbers[self.lids_on_host]), degrees)
        Renamed.renamed += 1


@pytest.fixture
def transport(has_nccl: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    host_gpu.use_host_as_gpu(monkeypatch, has_nccl=has_nccl)
    monkeypatch.setattr(gpu_graph, "Numbering", Renamed)
    monkeypatch.setattr(Renamed, "renamed", 0)
    return "nccl" if has_nccl else "auto"


@pytest.mark.parametrize(
    ("name", "has_nccl"),
    in_turn(["pagerank", "bfs", "wcc", "coreness", "sssp", "totals", "jump", "market"], [False, True]),
)
def test_ranks_give_the_interpreters_results(name: str, transport: str) -> None:
    program, sample = program_for(name, "skewed"), BATTERY["skewed"]
    how: dict[str, Any] = {"device": "cuda", "partitioner": "hash", "transport": transport}

    def on_rank(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), **how)

    judge = run(program, sample.build(), device="python")
    results = run_ranks(RANKS, on_rank)
    assert Renamed.renamed == RANKS
    assert_same(results[0], judge, exact=False, only_better=analyse(program).monotone is not None)


@pytest.mark.parametrize(("name", "has_nccl"), in_turn(["pagerank", "bfs", "market"], [True, False]))
def test_logs_go_on(name: str, transport: str, tmp_path: Path) -> None:
    program, sample = program_for(name, "skewed"), BATTERY["skewed"]
    log = Checkpoint(tmp_path, every=1)

    def on(device: str, **options: Any) -> Result:
        chosen = {"device": device, "partitioner": "hash", "checkpoint": log, **options}
        chosen["transport"] = "mpi" if device == "cpu" else transport
        return run_ranks(RANKS, lambda group: run(program, sample.build(group=group), **chosen))[0]

    judge = run(program, sample.build(), device="python")
    begun = on("cpu", max_supersteps=2)
    assert begun.saves
    assert on("cuda", resume=True, max_supersteps=3).saves
    assert_same(on("cuda", resume=True), judge, exact=False, only_better=True)
    assert Renamed.renamed >= RANKS
