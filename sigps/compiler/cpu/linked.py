"""A program's functions as loops call them: machine code of `compiler/typed`, linked into code that Numba compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigps.compiler.typed.builder import Functions
from sigps.compiler.typed.types import INT, NONE, Array, Number, Tuple, Type

__all__ = ["from_numba", "linked", "to_numba"]


def from_numba(kind: Any) -> Type:
    """Return the type of a Numba value: a number, an array of one dimension, or a tuple of these."""
    from numba.core.types import Array as NumbaArray
    from numba.core.types.containers import BaseTuple
    from numba.np.numpy_support import as_dtype

    kind = getattr(kind, "literal_type", kind)
    if isinstance(kind, BaseTuple):
        return Tuple(tuple(from_numba(item) for item in kind.types), getattr(kind, "instance_class", None))
    if isinstance(kind, NumbaArray):
        return Array(Number.of(as_dtype(kind.dtype)))
    return Number.of(as_dtype(kind))


def to_numba(kind: Type) -> Any:
    """Return Numba's type of a value that is no array."""
    import numba

    if isinstance(kind, Tuple):
        return numba.types.Tuple([to_numba(item) for item in kind.items])
    if kind == NONE:
        return numba.types.none
    assert isinstance(kind, Number)
    return numba.from_dtype(kind.dtype)


def linked(functions: Functions, name: Any, prefix: str, *, reorders: bool = False) -> Any:
    """Return a function that compiled loops call, inlined into them: it returns its result and its fault.

    Args:
        functions: The functions of a program.
        name: Which of them.
        prefix: What the names of its machine code begin with; no other program's do.
        reorders: Whether sums of floats may be done in any order.
    """
    from numba.extending import intrinsic

    def typed(_: Any, *given: Any) -> Any:
        return _signature(functions, name, prefix, given, reorders)

    arguments = [f"a{i}" for i in range(_count(functions, name))]
    scope: dict[str, Any] = {"typed": typed}
    text = ", ".join(["context", *arguments])
    exec(f"def call({text}):\n    return typed({text})", scope)
    return intrinsic(scope["call"])


def _count(functions: Functions, name: str) -> int:
    return len(functions.tree(name).args.args)


def _signature(functions: Functions, name: str, prefix: str, given: Sequence[Any], reorders: bool) -> Any:
    from sigps.compiler.typed.llvm import LlvmModule

    instance = functions.instance(name, tuple(from_numba(kind) for kind in given))
    result = to_numba(Tuple((instance.result or NONE, INT)))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function = _declared(context, builder, LlvmModule(functions, prefix, reorders=reorders), instance)
        parts: list[Any] = []
        for numba_type, value in zip(signature.args, values, strict=True):
            parts += _parts(context, builder, numba_type, value)
        found = builder.call(function, parts)
        results = iter([builder.extract_value(found, i) for i in range(instance.num_results + 1)])
        return _rebuilt(
            context, builder, signature.return_type, Tuple((instance.result or NONE, INT)), results
        )

    return result(*given), generate


def _declared(context: Any, builder: Any, made: Any, instance: Any) -> Any:
    """Return the declaration of a function of a module, which is linked to the code that is being generated."""
    from llvmlite import binding, ir

    function = made.function(instance)
    context.active_code_library.add_llvm_module(binding.parse_assembly(str(made.module)))
    declared = builder.module.globals.get(function.name)
    return declared or ir.Function(builder.module, function.function_type, function.name)


def _parts(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return the numbers, pointers, lengths and strides of a Numba value."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core.types import Array as NumbaArray
    from numba.core.types.containers import BaseTuple

    if isinstance(kind, BaseTuple):
        items = cgutils.unpack_tuple(builder, value, len(kind.types))
        return [
            p for item, v in zip(kind.types, items, strict=True) for p in _parts(context, builder, item, v)
        ]
    if isinstance(kind, NumbaArray):
        view = context.make_array(kind)(context, builder, value)
        pointer = builder.bitcast(view.data, ir.PointerType())
        stride = builder.extract_value(view.strides, 0)
        if kind.layout == "C":  # a constant, which LLVM folds into the address
            stride = ir.Constant(
                ir.IntType(64), kind.dtype.bitwidth // 8 if hasattr(kind.dtype, "bitwidth") else 1
            )
        return [pointer, builder.extract_value(view.shape, 0), stride]
    literal = getattr(kind, "literal_type", None)
    return [context.cast(builder, value, kind, literal) if literal is not None else value]


def _rebuilt(context: Any, builder: Any, kind: Any, typed: Any, parts: Any) -> Any:
    if isinstance(typed, Tuple):
        items = [
            _rebuilt(context, builder, k, t, parts) for k, t in zip(kind.types, typed.items, strict=True)
        ]
        return context.make_tuple(builder, kind, items)
    if typed is None or typed == NONE:
        return context.get_dummy_value()
    return next(parts)
