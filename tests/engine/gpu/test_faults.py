"""Arithmetic without a result on GPUs: the error that CPU cores give, alone, among peers and staged."""

from __future__ import annotations

from typing import Any

import pytest
from cells import program_of
from fault_cases import CASES, assert_faults, assert_named, path_of
from host_gpu import use_host_as_gpu
from thread_group import ThreadGroup, run_ranks

from sigps import ComputeError, Graph, run
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.frontend.analysis import analyse

LARGE = ("sum_at_a_hub", "deep_in_a_path", "deep_along_an_edge")


@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_the_engine_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_as_gpu(monkeypatch)
    assert_faults(name, device="cuda")


@pytest.mark.parametrize(
    "name",
    ["division", "sum", "along_an_edge", "of_the_senders_id", "sent_directly", "aggregator", "edge_state"],
)
def test_ranks_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_as_gpu(monkeypatch)
    case = CASES[name]

    def one(group: ThreadGroup) -> None:
        run(case.program(), case.graph(group), device="cuda")

    with pytest.raises(ComputeError) as caught:
        run_ranks(2, one)
    assert_named(caught.value, case)


@pytest.mark.parametrize(
    "program", [BFS(source=0), SSSP(source=0), WCC(), PageRank()], ids=lambda p: type(p).__name__
)
def test_programs_without_faults_have_no_code_for_them(program: Any) -> None:
    pytest.importorskip("cuda.core")
    derived = analyse(program)
    columns = {"weight": "f8"} if derived.edge_columns else {}
    for form in (derived, derived.priority_form):
        if form is not None:
            compiled = compile_for_cuda(form, columns, narrow_ids=True, arch="sm_90")  # type: ignore[arg-type]
            assert compiled.defines["SIGPS_FAULTS"] == "0"
            assert ", 1)" not in compiled.defines["SIGPS_EACH_SLOT(F)"]


def test_only_sums_that_may_leave_their_type_are_checked_in_memory() -> None:
    pytest.importorskip("cuda.core")
    compiled = compile_for_cuda(analyse(KCore()), {}, narrow_ids=True, arch="sm_90")
    assert compiled.defines["SIGPS_FAULTS"] == "1"
    assert compiled.defines["SIGPS_EACH_SLOT(F)"] == "F(0, int64_t, 0, 0)"
    compiled = compile_for_cuda(analyse(CASES["sum"].program()), {}, narrow_ids=True, arch="sm_90")
    assert compiled.defines["SIGPS_EACH_SLOT(F)"] == "F(0, int64_t, 0, 1)"


def test_the_place_is_that_of_the_program_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes with one text share their compiled code, also on disk."""
    use_host_as_gpu(monkeypatch)
    for body in ("self.x = 7 // self.id", "self.x = (\n    7\n    // self.id\n)"):
        program = program_of(body)
        with pytest.raises(ComputeError) as caught:
            run(program, Graph.from_edges([0, 1], [1, 0]), device="cuda")
        assert caught.value.file == type(program).compute.__code__.co_filename
        assert caught.value.source in body


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("name", CASES)
def test_on_a_gpu(name: str, direction: str) -> None:
    assert_faults(name, device="cuda", direction=direction)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["division", "sum", "along_an_edge", "aggregator", "deep_in_a_path"])
def test_by_edges(name: str) -> None:
    assert_faults(name, device="cuda", schedule="edge")


@pytest.mark.gpu
def test_the_small_frontier_kernel_ends_in_its_superstep() -> None:
    """A path's supersteps are run by one cluster, which delivers messages a superstep ahead of their faults."""
    for name in ("deep_in_a_path", "deep_along_an_edge"):
        case = CASES[name]
        read_in = case.superstep + (name == "deep_along_an_edge")  # type: ignore[operator]
        for left in (read_in, read_in + 1):
            options: dict[str, Any] = {"device": "cuda", "max_supersteps": left}
            if left == read_in:
                assert run(case.program(), case.graph(None), **options).supersteps == left
            else:
                with pytest.raises(ComputeError, match=f"superstep {case.superstep}"):
                    run(case.program(), case.graph(None), **options)


@pytest.mark.gpu
def test_an_aggregator_in_the_small_frontier_kernel() -> None:
    """What the vertices of a superstep give fits; what they have given so far does not, after 700."""
    body = (
        "if self.superstep == 0 and self.id == 0 or sum(messages) > 0:\n"
        "    self.total += (2**63 - 1) // 700\n    self.send_to_neighbors(1)\nself.vote_to_halt()"
    )
    program = program_of(body, "total = Aggregator.sum(int, persistent=True)", message="message=int")
    for device in ("cpu", "cuda"):
        with pytest.raises(ComputeError, match="fit 64 bits") as caught:
            run(program, path_of(1500)(None), device=device)
        assert caught.value.superstep == 700


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_what_does_not_overflow_is_exact(direction: Any) -> None:
    """The greatest sum that fits, and one more."""
    body = "self.n = sum(messages)\nif self.superstep == 0:\n    self.send_to_neighbors(2**62 - {} * (self.id % 2))"
    graph = Graph.from_edges([0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 2, 3, 0, 1])
    for less, fits in ((2, True), (1, True), (0, False)):
        text = body.format(less) + "\nself.vote_to_halt()"
        program = program_of(text, "n: State[int] = 0", message="message=int")
        if not fits:
            with pytest.raises(ComputeError, match="fit 64 bits"):
                run(program, graph, device="cuda", direction=direction)
            continue
        judge = run(program, graph, device="python")["n"].tolist()
        assert run(program, graph, device="cuda", direction=direction)["n"].tolist() == judge
