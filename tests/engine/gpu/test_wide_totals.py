"""Aggregators that shared memory does not hold beside packed edges are refused by name: kernels do not link."""

from __future__ import annotations

from pathlib import Path

import host_gpu
import pytest
from packed_runs import on_ranks

import sigps
from sigps import Aggregator, ConfigError, State, Vector, Vertex


class Wide(Vertex, message=int):
    """Walks its edges, sends to the least of its neighbours, and counts in as many cells as there may be."""

    got: State[int] = 0
    wide = Aggregator.sum(Vector[int, 128])

    def compute(self, messages):
        self.count_and_tell(sum(messages))

    def count_and_tell(self, got):
        self.got += got
        self.wide[self.id % 128] += 1
        least = self.id
        for edge in self.out_edges:
            least = min(least, edge.target)
        if self.superstep < 2:
            self.send_to(least, 1)
        self.vote_to_halt()


class Wider(Wide):
    """With one more number."""

    more = Aggregator.sum(int)

    def compute(self, messages):
        self.more += 1
        self.count_and_tell(sum(messages))


def test_programs_that_walk_and_send_to_single_vertices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = sigps.generate("grid", rows=9, columns=9)
    graph.save(tmp_path / "store", packed=True, order="given")
    host_gpu.use_host_as_gpu(monkeypatch)
    options = {"device": "cuda", "stream": "always"}
    found = sigps.run(Wide(), sigps.load(tmp_path / "store"), **options)
    assert found["got"].tolist() == sigps.run(Wide(), graph, device="python")["got"].tolist()
    with pytest.raises(ConfigError, match=r"aggregators of Wider have [0-9,]+ bytes, more than the 1,024"):
        sigps.run(Wider(), sigps.load(tmp_path / "store"), transfer="bulk", **options)
    with pytest.raises(ConfigError, match="aggregators of Wide have 1,024 bytes, more than the 512"):
        on_ranks(2, Wide(), tmp_path / "store", stream="always", transfer="bulk")
