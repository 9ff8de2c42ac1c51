"""Single precision inside compute() on a GPU: what becomes of operators, and that no double is divided."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

try:
    IS_THERE = all(importlib.util.find_spec(name) is not None for name in ("numba_cuda", "cuda.core"))
except ModuleNotFoundError:
    IS_THERE = False
if not IS_THERE:
    pytest.skip("numba-cuda is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)

import numpy as np
from numba import cuda, types

from sigps.compiler.cuda.functions import compiling_for
from sigps.compiler.cuda.single import in_single, single_operations


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a + b * c", "x = __add(a, __mul(b, c))"),
        ("x = 1.5 / n", "x = __div(__np.float32(1.5), n)"),
        ("x -= y", "x = __sub(x, y)"),
        ("x = a // b % c ** 2", "x = a // b % c ** 2"),
        ("x = __np.float64(total + value)", "x = __np.float64(total + value)"),
        ("x = 1e300", "x = 1e+300"),
        ("x = i + 1", "x = __add(i, 1)"),
    ],
)
def test_operators_become_calls(before: str, after: str) -> None:
    assert ast.unparse(in_single(ast.parse(before))) == after


FLOAT, DOUBLE, LONG, INT, BOOL = types.float32, types.float64, types.int64, types.int32, types.boolean


def ptx_of(work: Callable[..., Any], given: tuple[types.Type, ...]) -> tuple[str, types.Type]:
    """Compile for an architecture, GPU or not; return the text and the type of the result."""
    with compiling_for((9, 0)):
        return cuda.compile_ptx(work, given, device=True, cc=(9, 0))


@pytest.mark.parametrize(
    ("name", "given", "returned"),
    [
        ("__div", (FLOAT, LONG), FLOAT),
        ("__div", (LONG, LONG), FLOAT),
        ("__mul", (DOUBLE, FLOAT), FLOAT),
        ("__add", (BOOL, FLOAT), FLOAT),
        ("__add", (LONG, LONG), LONG),
        ("__sub", (INT, LONG), LONG),
    ],
)
def test_types(name: str, given: tuple[types.Type, ...], returned: types.Type) -> None:
    operation = single_operations()[name]

    def work(a, b):
        return operation(a, b)

    assert ptx_of(work, given)[1] == returned


def test_a_quotient_of_floats_takes_no_double() -> None:
    divide = single_operations()["__div"]

    def work(a, b):
        return divide(np.float32(1.0), divide(a, b))

    text = ptx_of(work, (FLOAT, LONG))[0]
    assert "div.rn.f32" in text
    assert "f64" not in text
