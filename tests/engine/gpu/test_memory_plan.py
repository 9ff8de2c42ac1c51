"""The plan of a run's memory on a GPU: nothing overlaps, what begins as zeros is in front, the sum is what it takes."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from cells import program_of
from edge_programs import EdgeTriangles, Marks, Returns
from equality_programs import PROGRAMS as ENGINE_PROGRAMS
from worked_cases import PROGRAMS

try:
    IS_THERE = importlib.util.find_spec("cuda.core") is not None
except ModuleNotFoundError:
    IS_THERE = False
if not IS_THERE:
    pytest.skip("cuda-core is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)

from sigps import Vertex
from sigps.apps import BFS, PageRank
from sigps.compiler.cuda.compile import CudaProgram, compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.memory_plan import MemoryPlan, Sizes, bytes_to_walk, can_cluster, can_push, plan_run

COLUMNS = {"weight": np.dtype(np.float64), "capacity": np.dtype(np.int32)}
MILLION = Sizes(num_owned=1_000_000, num_in_edges=16_000_000, num_hubs=100)
KINDS: dict[str, Any] = {
    "combined": ENGINE_PROGRAMS["pagerank"],
    "searching": BFS(source=0),
    "listed": ENGINE_PROGRAMS["coreness"],
    "direct messages in lists": ENGINE_PROGRAMS["jump"],
    "direct messages combined": ENGINE_PROGRAMS["two_letters"],
    "silent": ENGINE_PROGRAMS["out_degree"],
    "aggregating": ENGINE_PROGRAMS["totals"],
}


def compiled(program: Vertex, precision: Any = "single") -> CudaProgram:
    return compile_for_cuda(analyse(program, precision), COLUMNS, narrow_ids=True, arch="sm_90")


def per_vertex(plan: MemoryPlan, small: MemoryPlan) -> float:
    """Return the bytes that a vertex more takes."""
    return (plan.nbytes - small.nbytes) / (MILLION.num_owned - 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_lie_one_after_another(kind: str) -> None:
    plan = plan_run(compiled(KINDS[kind]), MILLION)
    end = 0
    for name in sorted(plan.offsets, key=plan.offsets.__getitem__):
        assert plan.offsets[name] % 256 == 0
        assert plan.offsets[name] >= end, f"{name} begins where the one before has not ended"
        assert plan.offsets[name] - end < 256, f"there is a hole before {name}"
        end = plan.offsets[name] + plan.sizes[name]
    assert end <= plan.nbytes < end + 256


@pytest.mark.parametrize("kind", KINDS)
def test_what_begins_as_zeros_is_in_front(kind: str) -> None:
    plan = plan_run(compiled(KINDS[kind]), MILLION)
    zeros = {"status", "sent0", "sent1", "touched0", "touched1", "overflowed", "counts", "num_direct"}
    for name, offset in plan.offsets.items():
        if name in zeros:
            assert offset + plan.sizes[name] <= plan.offsets["control"], name
        elif name != "offsets":  # of direct messages they begin as zeros, of lists they are given
            assert offset >= plan.offsets["control"], name


def test_the_first_plan_and_small_values_lie_together() -> None:
    """They are written, and read back, in one copy."""
    plan = plan_run(compiled(ENGINE_PROGRAMS["totals"]), MILLION)  # type: ignore[arg-type]
    at = [plan.offsets[name] for name in ("control", "aggregates", "params", "carried", "stats")]
    assert at == sorted(at)
    between = [n for n, offset in plan.offsets.items() if at[0] < offset < at[-1]]
    assert sorted(between) == ["aggregates", "carried", "params"]


def test_states_are_apart() -> None:
    plan = plan_run(compiled(BFS(source=0)), MILLION)
    assert plan.states == (0, 8_000_000)  # levels, and parents in 32 bits
    assert plan.state_bytes == 12_000_000


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (BFS(source=0), 1 + 3 / 8 + 4 + 8),  # status, bits, an inbox, two lists
        (PageRank(), 1 + 3 / 8 + 4 + 8 + 8),  # and two records
    ],
)
def test_bytes_a_vertex(program: Vertex, most: float) -> None:
    plans = [plan_run(compiled(program), s) for s in (MILLION, Sizes(1000, 16_000_000, 100))]
    assert per_vertex(*plans) == pytest.approx(most, abs=0.01)


def test_a_cluster_has_inboxes_of_its_own() -> None:
    with_cluster, without = (
        set(plan_run(compiled(BFS(source=0)), Sizes(1000, 4000, 0), has_cluster=has_cluster).offsets)
        for has_cluster in (True, False)
    )
    assert with_cluster - without == {"inboxes1", "touched1"}


def test_the_edge_schedule_lists_nobody() -> None:
    sizes = Sizes(1000, 4000, 0)
    by_vertex, by_edge = (
        plan_run(compiled(BFS(source=0)), sizes, goes_by_edge=goes_by_edge) for goes_by_edge in (False, True)
    )
    assert set(by_vertex.offsets) - set(by_edge.offsets) == {"targets", "senders", "hubs"}
    assert by_edge.sizes["inboxes0"] == by_vertex.sizes["inboxes0"] == 4000
    assert by_edge.offsets["touched0"] < by_edge.offsets["control"]


def test_the_edge_schedule_has_inboxes_where_nothing_is_read() -> None:
    plan = plan_run(compiled(ENGINE_PROGRAMS["out_degree"]), Sizes(1000, 4000, 0), goes_by_edge=True)  # type: ignore[arg-type]
    assert plan.sizes["inboxes0"] == 1000


def test_lists_have_a_slot_for_each_in_edge() -> None:
    coreness = compiled(ENGINE_PROGRAMS["coreness"])  # type: ignore[arg-type]
    few, many = (plan_run(coreness, Sizes(10, edges, 0)).nbytes for edges in (0, 1 << 20))
    assert many - few == pytest.approx(8 << 20, abs=256)


@pytest.mark.slow
def test_every_program_has_a_plan() -> None:
    for make in PROGRAMS.values():
        plan = plan_run(compiled(make()), Sizes(0, 0, 0))
        assert plan.nbytes > 0


def test_what_is_kept_on_an_edge_is_there_twice() -> None:
    """A flag of one byte and a whole number of eight, each written and seen; and a bit a vertex."""
    few, many = (
        plan_run(compiled(Marks()), Sizes(1 << 16, 0, 0, num_out_edges=edges)) for edges in (0, 1 << 20)
    )
    assert many.nbytes - few.nbytes == pytest.approx(2 * 9 << 20, abs=4 * 256)
    assert many.sizes["wrote"] == (1 << 16) // 8
    assert many.offsets["wrote"] + many.sizes["wrote"] <= many.offsets["control"]


def test_what_neighbours_on_other_ranks_keep_is_seen() -> None:
    few, many = (
        plan_run(compiled(Marks()), Sizes(1000, 0, 0, num_out_edges=5000, num_mirrored=copies))
        for copies in (0, 1 << 20)
    )
    grown = {name: size - few.sizes[name] for name, size in many.sizes.items() if size != few.sizes[name]}
    assert grown == {"committed0": 1 << 20, "committed1": 8 << 20}


@pytest.mark.parametrize(
    ("program", "a_copy"),
    [
        (BFS(source=0), 0),
        (
            EdgeTriangles(),
            4 + 4 + 8 + 2 * 24,
        ),  # where it leads, where one lies that others have, its value; crossing
        (Returns(), 4 + 4 + 2 * 8 + 2 * 24),
    ],
)
def test_bytes_of_a_copied_edge(program: Vertex, a_copy: int) -> None:
    derived = analyse(program)
    assert bytes_to_walk(derived, 0, 1000) == 1000 * a_copy
    assert bytes_to_walk(derived, 10, 1000) - bytes_to_walk(derived, 10) == 1000 * a_copy + 20 * (a_copy > 0)


@pytest.mark.parametrize(
    ("program", "an_edge"),
    [
        (BFS(source=0), 0),
        (Marks(), 4 + 8 + 2 * (1 + 8)),
        (EdgeTriangles(), 4 + 8 + 4 + 2 * 8),
        (Returns(), 4 + 8 + 4 + 8 + 2 * (8 + 8)),
    ],
)
def test_bytes_of_a_walked_edge(program: Vertex, an_edge: int) -> None:
    assert bytes_to_walk(analyse(program), 1000) == 1000 * an_edge


def test_what_warps_compute_is_pulled() -> None:
    body = "self.x = sum(messages)\nself.send_to_neighbors(self.x)\n"
    loop = "for edge in self.out_edges:\n    self.x += sum(1 for a, b in self.common_neighbors(edge))"
    assert can_push(compiled(program_of(body)))
    assert not can_push(compiled(program_of(body + loop)))


def test_where_something_is_kept_on_edges_is_no_cluster() -> None:
    body = "self.x = sum(messages)\nself.send_to_neighbors(self.x)"
    keeps = program_of(
        body, "x: State[float] = 0.0\nkept: EdgeState[int] = 0", before="from sigps import EdgeState"
    )
    assert can_cluster(compiled(program_of(body)))
    assert can_push(compiled(keeps))
    assert not can_cluster(compiled(keeps))
