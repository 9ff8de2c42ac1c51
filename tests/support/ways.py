"""All ways of running one program on one graph, and whether they gave the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from battery import Sample
from numpy.typing import NDArray
from thread_group import ThreadGroup, run_ranks

from sigps import Result, Vertex, run
from sigps.compiler.frontend.analysis import analyse

RELATIVE = 1e-9
"""How far sums of floats may be apart that were made in different orders, of at most 2048 terms."""


@dataclass(frozen=True)
class Way:
    """The options of one run."""

    ranks: int = 1
    device: str = "cpu"
    partitioner: str = "edges"
    direction: str = "auto"
    deterministic: bool = False
    threads: int = 1
    asynchronous: Any = False
    schedule: str = "vertex"

    def options(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "schedule": self.schedule,
            "direction": self.direction,
            "deterministic": self.deterministic,
            "threads": self.threads,
            "asynchronous": self.asynchronous,
            "partitioner": by_size(self.ranks) if self.partitioner == "function" else self.partitioner,
        }


def by_size(num_parts: int) -> Any:
    """Return a user's partition function: ids by the length of their text."""
    return lambda ids: np.array([len(str(oid)) % num_parts for oid in ids.tolist()], dtype=np.int64)


WAYS = [
    Way(direction="push"),
    Way(direction="pull"),
    Way(threads=3),
    Way(deterministic=True),
    Way(deterministic=True, direction="push", threads=2),
    Way(2),
    Way(2, direction="push", partitioner="hash"),
    Way(2, direction="pull", partitioner="metis"),
    Way(2, device="python", partitioner="hash", deterministic=True),
    Way(2, direction="push", partitioner="bfs", deterministic=True),
    Way(3, direction="push", partitioner="vertices"),
    Way(3, direction="pull", partitioner="hash"),
    Way(3, partitioner="function", deterministic=True),
    Way(3, device="python", partitioner="bfs"),
    Way(4, partitioner="metis", threads=2),
    Way(4, direction="push", partitioner="edges"),
    Way(4, direction="pull", partitioner="function"),
    Way(4, partitioner="hash", deterministic=True),
    Way(asynchronous="auto"),
    Way(direction="push", threads=2, asynchronous="auto"),
    Way(direction="pull", threads=2, asynchronous="auto"),
    Way(3, partitioner="hash", asynchronous="auto", deterministic=True),
]


def results_of(
    program: Vertex | Callable[..., Result], sample: Sample, ways: list[Way]
) -> list[tuple[Way, Result]]:
    """Run a program, or a function of a graph, many ways; each number of ranks builds its graph once."""
    results = []
    for size in sorted({way.ranks for way in ways}):
        mine = [way for way in ways if way.ranks == size]

        def run_all(group: ThreadGroup, mine: list[Way] = mine) -> list[Result]:
            graph = sample.build(group=group)
            return [_noted(way, program, graph) for way in mine]

        results += list(zip(mine, run_ranks(size, run_all)[0], strict=True))
    return results


def _noted(way: Way, program: Vertex | Callable[..., Result], graph: Any) -> Result:
    try:
        if not isinstance(program, Vertex):
            return program(graph, **way.options())
        return run(program, graph, **way.options())
    except Exception as error:
        error.add_note(str(way))
        raise


def assert_all_equal(program: Vertex, sample: Sample, ways: list[Way] = WAYS) -> None:
    """Check every way against the interpreter on one rank; deterministic ones bit for bit."""
    twin = Way(device="python")
    only_better = analyse(program).monotone is not None
    judges = {d: results_of(program, sample, [replace(twin, deterministic=d)])[0][1] for d in (False, True)}
    assert_same(judges[False], judges[True], exact=False)
    for way, result in results_of(program, sample, ways):
        try:
            judge = judges[way.deterministic]
            assert_same(
                result, judge, exact=way.deterministic, in_order=not way.asynchronous, only_better=only_better
            )
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


def assert_same(
    result: Result,
    expected: Result,
    *,
    exact: bool,
    in_order: bool = True,
    only_better: bool = False,
    relative: float = RELATIVE,
) -> None:
    """Check that two runs gave the same: ids, fields, end, aggregators; in order, also the supersteps.

    Vertices whose messages improve nothing may be missing among those that ran (`only_better`).
    """
    assert result.ids.tolist() == expected.ids.tolist()
    assert result.fields == expected.fields
    for name in expected.fields:
        assert_same_array(result[name], expected[name], name, exact, relative)
    assert_same_edges(result, expected, exact, relative)
    assert result.reason == expected.reason
    ran, should_run = ([s.active for s in r.stats] for r in (result, expected))
    if in_order and not only_better:
        assert ran == should_run
    elif in_order:
        assert all(mine <= theirs for mine, theirs in zip(ran, should_run, strict=True))
        assert [s.messages for s in result.stats] == [s.messages for s in expected.stats]
    assert result.aggregators.keys() == expected.aggregators.keys()
    for name, value in expected.aggregators.items():
        assert_same_array(np.array([result.aggregators[name]]), np.array([value]), name, exact, relative)


def assert_same_edges(result: Result, expected: Result, exact: bool, relative: float) -> None:
    """Check that two runs left the same on edges."""
    if expected._edges is None:
        assert result._edges is None
        return
    assert result.edges.sources.tolist() == expected.edges.sources.tolist()
    assert result.edges.targets.tolist() == expected.edges.targets.tolist()
    assert result.edges.fields == expected.edges.fields
    for name in expected.edges:
        assert_same_array(result.edges[name], expected.edges[name], name, exact, relative)


def assert_same_array(
    values: NDArray[Any], expected: NDArray[Any], name: str, exact: bool, relative: float = RELATIVE
) -> None:
    assert values.dtype == expected.dtype, name
    if isinstance(expected, np.ma.MaskedArray):  # NumPy takes what is masked for equal to anything
        assert values.tolist() == expected.tolist(), name
        return
    if values.dtype.kind == "f" and exact:
        np.testing.assert_array_equal(values, expected, err_msg=name, strict=True)
    elif values.dtype.kind == "f":
        relative = relative if values.dtype.itemsize == 8 else 1e-5
        np.testing.assert_allclose(values, expected, rtol=relative, atol=0, err_msg=name)
    else:
        np.testing.assert_array_equal(values, expected, err_msg=name)
