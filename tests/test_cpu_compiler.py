"""Compiled programs against the interpreter, which runs the class unmodified, and both against values worked out by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from programs import CASES

from sigps import Result, run


@cache
def interpreted(name: str, precision: Any = "double") -> Result:
    """Return the judge's result."""
    case = CASES[name]
    return run(case.program(), case.graph(), device="python", precision=precision)


def assert_same(result: Result, judge: Result, tolerance: float = 1e-12) -> None:
    """Integers and the run's course must agree exactly, floats up to the order of their sums."""
    assert (result.supersteps, result.reason) == (judge.supersteps, judge.reason)
    assert result.aggregators == pytest.approx(judge.aggregators, rel=tolerance)
    for field in judge.fields:
        assert result[field].dtype == judge[field].dtype, field
        exact = judge[field].dtype.kind != "f"
        np.testing.assert_allclose(result[field], judge[field], rtol=0 if exact else tolerance, err_msg=field)


@pytest.mark.parametrize("direction", ["auto", "push"])
@pytest.mark.parametrize("name", CASES)
def test_compiled_is_interpreted(name: str, direction: Any) -> None:
    case = CASES[name]
    result = run(case.program(), case.graph(), device="cpu", direction=direction, threads=1)
    assert_same(result, interpreted(name))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.expected])
def test_interpreted_by_hand(name: str) -> None:
    judge = interpreted(name)
    for field, values in CASES[name].expected.items():
        assert judge[field].tolist() == pytest.approx(values), field
