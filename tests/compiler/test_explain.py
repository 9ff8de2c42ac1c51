"""What `explain` says of a class's declarations, and of runs side by side."""

from __future__ import annotations

from sigps import Aggregator, Param, State, Vector, Vertex
from sigps.apps import BFS, CDLP, SSSP, WCC, BiTriDN, DegreeHistogram, KHop
from sigps.compiler.explain import explain


class Factors(Vertex, message=Vector[float, "rank"]):
    """Parameters of all kinds, and aggregators of vectors."""

    rank: Param[int]
    scale: Param[float]
    how: Param[str] = "sum"
    user: State[Vector[float, "rank"]] = 0.5  # noqa: F821, UP037
    total = Aggregator.sum(Vector[float, "rank"])
    is_any = Aggregator.any()

    def compute(self, messages):
        if self.how == "sum":
            self.user = sum(messages) * self.scale
        self.total += self.user
        self.is_any += True
        self.send_to_neighbors(self.user)
        self.vote_to_halt()


def test_every_parameter_is_named_and_every_aggregator_has_its_type() -> None:
    text = explain(Factors, rank=3)
    assert "params       rank: int, scale: float, how: constant = 'sum'\n" in text
    assert "aggregators  total: sum of Vector[float, 3], is_any: any\n" in text
    assert "user: Vector[float, 1]" in explain(Factors)  # an example


def test_lanes() -> None:
    said = {
        cls: explain(cls).partition("lanes        ")[2].partition("\n")[0] for cls in (SSSP, WCC, BiTriDN)
    }
    assert said[SSSP] == "runs of run_many go side by side on CPU cores"
    assert said[WCC] == f"{said[SSSP]}, with asynchronous=False"
    assert said[BiTriDN].startswith("no, runs of run_many have a thread each: it keeps values on edges")
    assert "lanes        runs of run_many go side by side on CPU cores" in explain(DegreeHistogram)


def test_it_says_how_results_follow_updates():
    lines = {
        cls: explain(cls).partition("updates      ")[2].partition("\n")[0]
        for cls in (SSSP, WCC, BFS, KHop, CDLP)
    }
    assert lines[SSSP].startswith("incremental (monotone)")
    assert lines[SSSP].endswith("not those of a full run: parent")
    assert lines[WCC].startswith("incremental (monotone)")
    assert "not those" not in lines[WCC]
    assert lines[BFS].startswith("incremental (first arrival)")
    assert lines[CDLP].startswith("incremental (fixed rounds)")
    assert lines[KHop].startswith("a full run after each batch: not monotone")
