"""Pushes that many threads share, through bins."""

from __future__ import annotations

from typing import Any

import pytest
from battery import BATTERY, NAMES
from equality_programs import program_for
from send_programs import Rounds
from turns import half_of
from ways import Way, assert_same

from sigps import Vertex, run
from sigps.apps import KCore
from sigps.engine.cpu import push

WAY = Way(threads=3, direction="push")
PUSHED = ["extremes", "spread", "climb", "reach", "market", "pagerank"]


@pytest.fixture
def shared(_little_is_divided: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many senders each round of bins has."""
    rounds: list[int] = []
    binned = push.Scatter._binned

    def noted(self: Any, native: Any, senders: Any, *rest: Any) -> Any:
        rounds.append(senders.size)
        return binned(self, native, senders, *rest)

    monkeypatch.setattr(push.Scatter, "_binned", noted)
    return rounds


@pytest.mark.parametrize(("name", "graph"), half_of(PUSHED, NAMES))
def test_as_the_interpreter(name: str, graph: str, shared: list[int]) -> None:
    program, sample = program_for(name, graph), BATTERY[graph]
    result = run(program, sample.build(), **WAY.options())
    assert_same(result, run(program, sample.build(), device="python"), exact=False)
    assert bool(shared) == any(s.messages for s in result.stats)


@pytest.mark.parametrize("program", [KCore(), Rounds()], ids=lambda p: type(p).__name__)
def test_where_some_stay_active_and_some_retire(program: Vertex, shared: list[int]) -> None:
    sample = BATTERY["skewed"]
    result = run(program, sample.build(), **WAY.options())
    assert_same(result, run(program, sample.build(), device="python"), exact=False)
    assert len(shared) > result.supersteps  # several rounds in some
