"""NumPy's scalar functions that numba-cuda gives types but no code: `np.sqrt(x)`, `np.floor(x)`, `np.power(x, y)`.

Its table of ufuncs is completed in place; what a version already has stays. Imports numba-cuda.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda import ufuncs
from numba.cuda.mathimpl import get_unary_impl_for_fn_and_ty
from numba.cuda.np import ufunc_db

__all__ = ["complete_ufuncs"]

_AS_IN_MATH: dict[np.ufunc, Callable[..., Any]] = {
    np.exp: math.exp,
    np.expm1: math.expm1,
    np.fabs: math.fabs,
    np.log1p: math.log1p,
    np.sqrt: math.sqrt,
}

# Their code for the CPU calls nothing that a GPU lacks.
_AS_ON_CPU: tuple[np.ufunc, ...] = (
    np.absolute,
    np.add,
    np.ceil,
    np.copysign,
    np.floor,
    np.floor_divide,
    np.fmod,
    np.isfinite,
    np.isinf,
    np.multiply,
    np.negative,
    np.positive,
    np.power,
    np.reciprocal,
    np.remainder,
    np.sign,
    np.signbit,
    np.square,
    np.subtract,
    np.trunc,
)


@functools.cache
def complete_ufuncs() -> None:
    """Give numba-cuda what it lacks of these; once a process."""
    known = ufuncs.ufunc_db()
    for ufunc in _AS_ON_CPU:
        known.setdefault(ufunc, ufunc_db.get_ufunc_info(ufunc))
    for ufunc, function in _AS_IN_MATH.items():
        code = functools.partial(_call, function)
        known.setdefault(ufunc, {"f->f": code, "d->d": code})


def _call(function: Callable[..., Any], context: Any, builder: Any, signature: Any, given: Any) -> Any:
    implementation = get_unary_impl_for_fn_and_ty(function, signature.args[0])
    return implementation(context, builder, signature, given)
