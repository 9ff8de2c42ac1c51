"""What a run keeps of itself beside its result, so that a report can be made of it later."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from sigps.account import Line, Span
from sigps.compiler.program import VertexProgram
from sigps.costs.sizes import Size
from sigps.engine.contract import EngineSpec
from sigps.engine.stats import SaveStats, StatsLog
from sigps.graph.graph import Graph
from sigps.graph.report import LoadReport
from sigps.model.vertex import Vertex
from sigps.system.rank_facts import RankFacts

__all__ = ["Finished", "RunRecord", "plain_options"]


class Finished(Protocol):
    """What a report reads of a `Result`."""

    reason: Any
    supersteps: int
    stats: StatsLog
    aggregators: dict[str, Any]
    account: Mapping[Line, float]
    device: str
    saves: tuple[SaveStats, ...]

    def summary(self) -> str:
        """Say in one line why the run ended, after how much work."""
        ...


class RunRecord(NamedTuple):
    """One run, as it was asked for and as it went. It keeps no graph alive.

    Attributes:
        program: The program with its parameters, vertex ids in it as the user's.
        derived: What the compiler derived; None where the class ran as it is.
        spec: The engine.
        why_device: Why it was that engine.
        options: The arguments of `sigps.run` that are not their defaults, and are plain values.
        ranks: What each rank ran.
        leases: When each lease began (`time.perf_counter()`), and how many supersteps it ran.
        precision: The array type of Python's `float`.
        reorders: Whether it could go without barriers, as it was asked for.
        arguments: The words of the command that ran it.
        spans: Where this rank's time went, and when.
        began: When the run began, by the clock on the wall: seconds since 1970.
        size: Of the graph as the program took it.
        loaded_size: Of the graph that was given.
        num_columns: Edge columns of the first.
        graph: The graph that was given; None once nobody else holds it.
        loaded: What loading that found.
    """

    program: Vertex
    derived: VertexProgram | None
    spec: EngineSpec
    why_device: str
    options: Mapping[str, Any]
    ranks: Sequence[RankFacts]
    leases: Sequence[tuple[float, int]]
    spans: Sequence[Span]
    size: Size
    loaded_size: Size
    num_columns: int
    graph: weakref.ref[Graph]
    loaded: LoadReport
    began: float
    precision: Literal["single", "double"]
    reorders: bool
    arguments: tuple[str, ...]


def plain_options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, where they are plain values.

    >>> plain_options({"device": "cpu", "seed": 0, "initial": [1]}, {"device": "auto", "seed": 0, "initial": None})
    {'device': 'cpu'}
    """
    given = [(n, v) for n, v in options.items() if v is not defaults[n]]
    return {n: v for n, v in given if isinstance(v, (bool, int, float, str)) and v != defaults[n]}
