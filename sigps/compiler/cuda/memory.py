"""Typed loads and stores at byte offsets, for functions that Numba compiles for CUDA. Imports numba-cuda.

Each is an intrinsic of one address computation and one access. An access through integers would hide from LLVM
which object an address belongs to, and rows that the caller keeps in registers would go to local memory.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numba
import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic, models, overload, register_model

from sigps.compiler.cuda.adapters import code_of
from sigps.kernels.cuda.warp_neighbors import CELLS

__all__ = ["POINTER", "Elements", "accessors"]

POINTER = types.CPointer(types.uint8)


class Elements(types.Type):  # type: ignore[misc]
    """The array behind a pointer, as compute() sees edge columns, lists and edge states: it can be indexed, no more.

    Args:
        dtype: Of an element.
        is_shared: Whether all lanes of a warp store to it together: each value is stored when all have come so far.
    """

    def __init__(self, dtype: np.dtype[Any], is_shared: bool = False) -> None:
        self.dtype, self.is_shared = dtype, is_shared
        super().__init__(name=f"Elements({dtype}{', shared' if is_shared else ''})")


@register_model(Elements)
class _ElementsModel(models.PrimitiveModel):  # type: ignore[misc]
    """The pointer alone."""

    def __init__(self, manager: Any, elements: Elements) -> None:
        super().__init__(manager, elements, manager.lookup(POINTER).get_value_type())


@overload(operator.getitem)
def _element(elements, index):  # type: ignore[no-untyped-def]
    if not isinstance(elements, Elements):
        return None
    load, size = _load_element(elements), elements.dtype.itemsize
    return lambda elements, index: load(elements, np.int64(index) * size)


@overload(operator.setitem)
def _set_element(elements, index, value):  # type: ignore[no-untyped-def]
    if not isinstance(elements, Elements):
        return None
    store, size = _store_element(elements), elements.dtype.itemsize

    def set_element(elements, index, value):  # type: ignore[no-untyped-def]
        store(elements, np.int64(index) * size, value)

    def set_shared(elements, index, value):  # type: ignore[no-untyped-def]
        cuda.syncwarp()
        store(elements, np.int64(index) * size, value)

    return set_shared if elements.is_shared else set_element


@functools.cache
def accessors() -> dict[str, Any]:
    """Return the functions that adapters call: `load_f8(pointer, offset)`, `store_f8(pointer, offset, value)`, ...

    And `load_pointer(pointer, offset)`, `elements_f8(pointer)`, `shared_f8(pointer)`, `new_cell()`, `new_cells()`,
    `next_of(pointer)`.
    """
    found: dict[str, Any] = {
        "load_pointer": _load(POINTER, POINTER, 8),
        "new_cell": _new_cell,
        "new_cells": _new_cells,
        "next_of": _next_of,
    }
    for code in "?bhilqBHILQfd":
        dtype = np.dtype(code)
        name, value_type = code_of(dtype), numba.from_dtype(dtype)
        found[f"load_{name}"] = _load(POINTER, value_type, dtype.itemsize)
        found[f"store_{name}"] = _store(POINTER, value_type, dtype.itemsize)
        found[f"elements_{name}"] = _elements(Elements(dtype))
        found[f"shared_{name}"] = _elements(Elements(dtype, is_shared=True))
    return found


@functools.cache
def _load_element(elements: Elements) -> Any:
    return _load(elements, numba.from_dtype(elements.dtype), elements.dtype.itemsize)


@functools.cache
def _store_element(elements: Elements) -> Any:
    return _store(elements, numba.from_dtype(elements.dtype), elements.dtype.itemsize)


def _load(pointer_type: Any, value_type: Any, size: int) -> Any:
    @intrinsic
    def load(context, pointer, offset):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
            model = context.data_model_manager[value_type]
            return model.load_from_data_pointer(builder, _address(builder, given, model), size)

        return value_type(pointer_type, types.int64), generate

    return load


def _store(pointer_type: Any, value_type: Any, size: int) -> Any:
    @intrinsic
    def store(context, pointer, offset, value):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
            model = context.data_model_manager[value_type]
            builder.store(model.as_data(builder, given[2]), _address(builder, given, model), align=size)
            return context.get_dummy_value()

        return types.void(pointer_type, types.int64, value_type), generate

    return store


def _address(builder: Any, given: Any, model: Any) -> Any:
    return builder.bitcast(builder.gep(given[0], [given[1]]), model.get_data_type().as_pointer())


def _elements(found: Elements) -> Any:
    @intrinsic
    def elements(context, pointer):  # type: ignore[no-untyped-def]
        return found(POINTER), lambda context, builder, signature, given: given[0]

    return elements


@intrinsic
def _new_cell(context):  # type: ignore[no-untyped-def]
    """Return a pointer to 4 bytes, zero, that belong to this call."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        from llvmlite import ir
        from numba.cuda import cgutils

        cell = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        return builder.bitcast(cell, ir.IntType(8).as_pointer())

    return POINTER(), generate


@intrinsic
def _new_cells(context):  # type: ignore[no-untyped-def]
    """Return a pointer to the cells of this call in which `warp_neighbors.py` keeps what it found."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        from llvmlite import ir
        from numba.cuda import cgutils

        words = ir.ArrayType(ir.IntType(64), CELLS // 8)
        return builder.bitcast(cgutils.alloca_once(builder, words), ir.IntType(8).as_pointer())

    return POINTER(), generate


@intrinsic
def _next_of(context, pointer):  # type: ignore[no-untyped-def]
    """Add 1 to the 8-byte count behind a pointer, atomically; return what it was."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        from llvmlite import ir

        count = builder.bitcast(given[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", count, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(POINTER), generate
