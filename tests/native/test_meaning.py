"""What a drawn compute() leaves: machine code and the C++ of GPUs against the interpreter, bit for bit, errors too."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from battery import BATTERY
from cells import program_of
from drawn_programs import Drawing, call_compute, call_on_host
from host_cpp import has_compiler

from sigps import ComputeError, run
from sigps.native.operators import PROBLEMS

PROGRAMS, AT_ONCE = int(os.environ.get("SIGPS_PROGRAMS", "100")), 50
ONE = BATTERY["one_vertex"].build()


def interpreted(seed: int) -> dict[str, Any] | ComputeError:
    try:
        result = run(Drawing(seed).program(), ONE, device="python")
    except ComputeError as error:
        return error
    return {name: result[name][0].tolist() for name in result.fields}


def is_same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return all(map(is_same, a, b))
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    return bool(a == b)


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_a_drawn_program_means_the_same(first: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIGPS_CACHE_DIR", str(tmp_path))
    num_equal = 0
    seeds = range(first, first + AT_ONCE)
    called = [call_compute(Drawing(seed).program()) for seed in seeds]
    if has_compiler():
        for seed, one, other in zip(
            seeds, called, call_on_host([Drawing(s).program() for s in seeds]), strict=True
        ):
            # Places are those of one drawn class each.
            assert (one.fault or ())[1:] == (other.fault or ())[1:], f"seed {seed}"
            if one.fault is None:
                assert all(is_same(v, other.states[name]) for name, v in one.states.items()), f"seed {seed}"
    for seed, (found, fault) in zip(seeds, ((c.states, c.fault) for c in called), strict=True):
        judge = interpreted(seed)
        if isinstance(judge, ComputeError) or fault is not None:
            assert isinstance(judge, ComputeError), f"seed {seed}: only compiled code says: {fault}"
            assert fault is not None, f"seed {seed}: only the interpreter says: {judge}"
            assert PROBLEMS[fault[2]] in str(judge), f"seed {seed}: {judge}"
        else:
            wrong = {
                name: (found[name], value) for name, value in judge.items() if not is_same(found[name], value)
            }
            assert not wrong, f"seed {seed}: {wrong}"
            num_equal += 1
    assert num_equal > AT_ONCE / 2


@pytest.mark.parametrize(
    ("numbers", "least"), [("nan, nan, nan", 0), ("nan, inf, inf", 0), ("inf, nan, 2.0", 2)]
)
def test_a_nan_has_the_place_of_an_infinite_number(numbers: str, least: int) -> None:
    text = numbers.replace("nan", "math.nan").replace("inf", "math.inf")
    program = program_of(
        f"v = Vector[float, 3](({text}))\nself.k = int(np.argmin(v))\nself.g = int(np.argmax(-v))\nself.vote_to_halt()",
        "k: State[int] = 0\ng: State[int] = 0",
    )
    judge = run(program, ONE, device="python")
    assert [judge["k"][0], judge["g"][0]] == [least, least]
    assert call_compute(program).states["k"] == call_compute(program).states["g"] == least


@pytest.mark.parametrize("one", ["0.0", "-0.0", "math.nan", "2.0"])
@pytest.mark.parametrize("other", ["0.0", "-0.0", "math.nan", "self.k"])
def test_of_equals_the_first_is_taken_and_nan_wins(one: str, other: str) -> None:
    program = program_of(
        f"a, b = {one}, {other}\nself.x, self.y = np.maximum(a, b), np.minimum(a, b)\n"
        "self.v = np.maximum(Vector[float, 4](a), Vector[float, 4](b))\nself.vote_to_halt()",
        "y: State[float] = 0.0\nk: State[int] = 2\nv: State[Vector[float, 4]] = 0.0",
    )
    judge = run(program, ONE, device="python")
    found = call_compute(program).states
    assert all(is_same(found[name], judge[name][0].tolist()) for name in judge.fields)
    pair = [float(text.replace("math.", "").replace("self.k", "2")) for text in (one, other)]
    assert math.isnan(found["x"]) if math.isnan(sum(pair)) else is_same(found["x"], max(pair))
