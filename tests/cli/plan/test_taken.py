"""The bytes that a plan names against those that a run takes: at its most, as the allocator counts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import taken_memory
from gas_programs import Rank
from taken_memory import app_of, drawn, planned, taken
from turns import some_of

import sigps.apps
from sigps import Graph, Param, State, Table, Vertex, from_column, load, run
from sigps.compiler.frontend.analysis import analyse
from sigps.costs.memory import memory
from sigps.costs.sizes import size_of
from sigps.engine.contract import RunOptions
from sigps.errors import DeviceError
from sigps.job.streaming import decide_streaming

RANKED = [
    "PageRank",
    "BFS",
    "SSSP",
    "CDLP",
    "KCore",
    "HITS",
    "LCC",
    "EdgeTriangles",
    "LabelGroups",
    "ALS",
    "Bridges",
]
"""Programs of each kind: records pulled and pushed, monotone, messages by key, an undirected and a simple graph, both
ways, measures of neighbours, values on edges, rows of neighbours with phases, vectors, direct messages."""


def check(program: Vertex, make: Any, **options: Any) -> None:
    used, plan = taken(program, make, **options), planned(program, make())
    assert used <= 1.05 * plan + 64 * 1024  # of Python's own
    assert plan <= 5 * used  # programs may send less than a message along each edge


@pytest.mark.parametrize("name", sorted({*RANKED, *some_of(sigps.apps.__all__, 14)}))
def test_a_run_takes_what_was_planned(name: str) -> None:
    program, options, make = app_of(name)
    check(program, make, **options)


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_take_what_was_planned(mpirun: str) -> None:
    command = [mpirun, "-n", "2", sys.executable, taken_memory.__file__, *RANKED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr
    found = {name: (used, plan) for name, used, plan in map(json.loads, ended.stdout.splitlines())}
    assert [*found] == RANKED
    for name, (used, plan) in found.items():
        assert max(used) <= 1.05 * plan + 64 * 1024, name
        assert plan <= 5 * max(used), name


class Priced(Vertex, message=float):
    """A program with a table, and a state that begins with a column."""

    prices: Param[Table[float]]
    kind: State[int] = from_column("kind")
    price: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.price = self.prices[self.kind]
        self.vote_to_halt()


def test_vertex_columns_and_tables_are_planned() -> None:
    def make() -> Graph:
        rows = {"kind": np.arange(1000), "image": np.zeros((1000, 64))}
        return drawn(directed=False).with_vertex_columns(rows)

    program = Priced(prices=np.arange(50_000.0))
    parts = memory(size_of(make()), analyse(program), 1, 16, table_bytes=400_000)
    assert (parts["columns"], parts["tables"]) == (1000 * (8 + 64 * 8 + 8), 400_000)
    check(program, make)


def test_what_a_linear_contraction_passes_on_is_planned() -> None:
    """Three terms of a vertex, what is not taken of each core, and states and records as they were: 8 bytes each."""

    def make() -> Graph:
        ids = np.arange(30_000)
        return Graph.from_edges(ids, np.roll(ids, 1), directed=False)

    program, size = Rank(), size_of(make())
    of_run = memory(size, analyse(program), 1, 8, num_threads=1)
    assert of_run["residuals"] == 30_000 * 8 * (3 + 1 + 2)
    assert taken(program, make) <= 1.05 * sum(of_run.values()) + 64 * 1024
    many_edges = size._replace(num_edges=10**6)
    assert memory(many_edges, analyse(program), 1, 8, num_threads=2)["residuals"] == 30_000 * 8 * (3 + 2 + 2)
    assert "residuals" not in memory(size, analyse(program), 1, 8)  # by supersteps
    assert "residuals" not in memory(size, analyse(program), 1, 8, num_threads=5)  # more cores pull
    limit = {"device": "cpu", "threads": 1, "host_memory": sum(of_run.values()) - 1, "stream": "never"}
    with pytest.raises(DeviceError, match="the run needs"):
        run(program, make(), **limit)
    run(program, make(), asynchronous=False, **limit)


class Pokes(Vertex, message=float):
    """One direct message a vertex, or one along every edge."""

    along_all: Param[bool]
    got: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for value in messages:
            self.got += value
        if self.superstep < 2:
            least = self.id
            for edge in self.out_edges:
                if self.along_all:
                    self.send_to(edge.target, self.got)
                least = min(least, edge.target)
            if not self.along_all:
                self.send_to(least, self.got)
        self.vote_to_halt()


def test_direct_messages_of_a_run_that_streams_are_planned(tmp_path: Path) -> None:
    drawn(directed=False, n=4000).save(tmp_path / "store", packed=True, order="given")
    options: dict[str, Any] = {"host_memory": None, "stream": "always", "threads": [1]}
    for along_all in (False, True):
        program, stored = Pokes(along_all=along_all), load(tmp_path / "store")
        plan = decide_streaming(program, analyse(program), stored, "cpu", RunOptions(), **options)
        assert plan is not None
        needed = sum(plan.resident.values()) + plan.direct * along_all
        used = taken(program, lambda: load(tmp_path / "store"), stream="always")
        assert used - stored.nbytes <= 1.05 * needed + 64 * 1024
        assert needed <= 5 * used
