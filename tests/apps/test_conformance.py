"""LDBC Graphalytics: the validation graphs and the example graphs, for the algorithms that are here.

BFS and CDLP are compared exactly, components up to renaming (both ways), the other floats within 1e-4 relative.
The sets of vertices are compared first: a missing vertex is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Vertex
from sigps.apps import BFS, CDLP, LCC, SSSP, WCC, PageRank
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.packer import Order

UNREACHED = 9223372036854775807
TOLERANCE = 1e-4


def check_exactly(expected: dict[int, str], found: dict[int, Any]) -> None:
    assert {v: int(text) for v, text in expected.items()} == {
        v: UNREACHED if level < 0 else level for v, level in found.items()
    }


def check_nearly(expected: dict[int, str], found: dict[int, Any]) -> None:
    for vertex, text in expected.items():
        value = float(text)
        assert math.isclose(found[vertex], value, rel_tol=TOLERANCE), (vertex, found[vertex], value)


def check_up_to_renaming(expected: dict[int, str], found: dict[int, Any]) -> None:
    pairs = {(expected[v], found[v]) for v in expected}
    assert len(pairs) == len({e for e, _ in pairs}) == len({f for _, f in pairs})


class Case:
    """One graph and one answer: files, program, and how to compare."""

    def __init__(
        self, name: str, program: Vertex, field: str, graph: str, answer: str, directed: bool
    ) -> None:
        self.name, self.program, self.field = name, program, field
        self.graph, self.answer, self.directed = graph, answer, directed

    def check(self, folder: Path, result: sigps.Result) -> None:
        lines = (folder / self.answer).read_text().split("\n")
        expected = {int(line.split()[0]): line.split()[1] for line in lines if line.strip()}
        found = dict(zip(result.ids.tolist(), result[self.field].tolist(), strict=True))
        assert found.keys() == expected.keys()
        rules: dict[str, Callable[..., None]] = {
            "level": check_exactly,
            "label": check_exactly,
            "component": check_up_to_renaming,
            "rank": check_nearly,
            "distance": check_nearly,
            "coefficient": check_nearly,
        }
        rules[self.field](expected, found)


def validation_cases() -> list[Case]:
    cases = []
    for directed in (True, False):
        kind = "dir" if directed else "undir"
        iterations = 14 if directed else 26
        for name, program, field, suffix in (
            ("bfs", BFS(source=1), "level", "-input"),
            ("cdlp", CDLP(iterations=5), "label", "-input"),
            ("pr", PageRank(damping=0.85, iterations=iterations), "rank", "-input"),
            ("wcc", WCC(), "component", "-input"),
            ("sssp", SSSP(source=1), "distance", "-input.e"),
            ("lcc", LCC(), "coefficient", "-input"),
        ):
            paths = f"{name}/{kind}{suffix}", f"{name}/{kind}-output"
            cases.append(Case(f"{name}-{kind}", program, field, *paths, directed))
    return cases


def example_cases() -> list[Case]:
    cases = []
    for directed in (True, False):
        stem = f"example/example-{'directed' if directed else 'undirected'}"
        source = 1 if directed else 2
        for name, program, field in (
            ("BFS", BFS(source=source), "level"),
            ("CDLP", CDLP(iterations=2), "label"),
            ("PR", PageRank(damping=0.85, iterations=2), "rank"),
            ("WCC", WCC(), "component"),
            ("SSSP", SSSP(source=source), "distance"),
            ("LCC", LCC(), "coefficient"),
        ):
            cases.append(Case(f"{stem[8:]}-{name}", program, field, f"{stem}.e", f"{stem}-{name}", directed))
            if name != "SSSP":  # the lists of neighbours have no weights
                files = f"{stem}-input", f"{stem}-{name}"
                cases.append(Case(f"{stem[8:]}-{name}-lists", program, field, *files, directed))
    return cases


CASES = {case.name: case for case in [*validation_cases(), *example_cases()]}


STREAMED = [
    name
    for name, case in CASES.items()
    if "lists" not in name
    and not isinstance(case.program, LCC)
    and (case.program.declaration.directed or not case.directed)
]
"""Of one file each those whose edges need not be in memory: no rows of neighbours, and no other form of the graph."""


@pytest.fixture(scope="module")
def graphs_dir(conformance_dir: Path) -> Path:
    return conformance_dir / "ldbc_graphalytics" / "validation-graphs"


def load(folder: Path, case: Case, group: ThreadGroup | None = None) -> Graph:
    is_lists = case.graph.endswith("-input")
    return sigps.load(
        folder / case.graph, format="adjacency" if is_lists else "ldbc", directed=case.directed, group=group
    )


@pytest.mark.parametrize(("device", "ranks"), [("python", 1), ("cpu", 1), ("cpu", 3)])
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_that_of_the_benchmark(name: str, ranks: int, device: Any, graphs_dir: Path) -> None:
    case = CASES[name]

    def run_case(group: ThreadGroup) -> sigps.Result:
        return sigps.run(case.program, load(graphs_dir, case, group), device=device)

    case.check(graphs_dir, run_ranks(ranks, run_case)[0])


@pytest.mark.parametrize(("order", "ranks"), [("given", 1), ("given", 3), ("degree", 2)])
@pytest.mark.parametrize("name", STREAMED)
def test_the_answer_of_a_run_that_streams(
    name: str, order: Order, ranks: int, graphs_dir: Path, tmp_path: Path
) -> None:
    case = CASES[name]
    save_packed(load(graphs_dir, case), tmp_path / "graph", order=order, page_arcs=32)

    def run_case(group: ThreadGroup) -> sigps.Result:
        return sigps.run(case.program, sigps.load(tmp_path / "graph", group=group), stream="always")

    case.check(graphs_dir, run_ranks(ranks, run_case)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("name", CASES)
def test_the_answer_of_a_gpu_is_that_of_the_benchmark(name: str, direction: Any, graphs_dir: Path) -> None:
    case = CASES[name]
    graph = load(graphs_dir, case)
    for asynchronous in (False, "auto"):
        options: dict[str, Any] = {"direction": direction, "asynchronous": asynchronous}
        case.check(graphs_dir, sigps.run(case.program, graph, device="cuda", **options))


def test_the_rules_of_comparison_refuse_wrong_answers(graphs_dir: Path) -> None:
    for name in ("bfs-dir", "cdlp-dir", "pr-dir", "wcc-dir", "sssp-dir"):
        case = CASES[name]
        result = sigps.run(case.program, load(graphs_dir, case), device="python")
        case.check(graphs_dir, result)
        values = result[case.field]
        values[1] = values[1] * 1.001 if case.field in ("rank", "distance") else values[1] + 10**6
        if case.field == "component":
            values[:] = 1
        with pytest.raises(AssertionError):
            case.check(graphs_dir, result)
