"""An emitter of CUDA C++: device functions that are inlined wherever they are called.

A function takes the numbers of its arguments, of each array a pointer, and a reference for each part of its result; it
returns its fault. What it calls of `kernels/cuda/arithmetic.cuh` is in the namespace `sigps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sigps.native.builder import Functions, Instance
from sigps.native.emitter import Block
from sigps.native.types import BOOL, INT, NONE, UINT, Array, Number, Scalar, Vector, flat

__all__ = ["CppFunctions", "cpp_type"]


def cpp_type(kind: Scalar | Array) -> str:
    """Return the type of a number or vector, or of the pointer to an array's elements."""
    if isinstance(kind, Array):
        return f"{cpp_type(kind.element)} *"
    if isinstance(kind, Vector):
        return f"sigps::Vec<{cpp_type(kind.element)}, {kind.length}>"
    if kind == BOOL:
        return "bool"
    if kind.is_float:
        return "float" if kind.bits == 32 else "double"
    return f"{kind.dtype.name}_t"


class CppFunctions:
    """The instances of some functions, emitted as they are called.

    Attributes:
        text: Their definitions; what is called stands first.
        math: The functions of C's library that they call, as `sqrt`.
    """

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.math: set[str] = set()
        self._texts: list[str] = []
        self._emitted: set[Instance] = set()

    @property
    def text(self) -> str:
        return "\n".join(self._texts)

    def name(self, instance: Instance) -> str:
        """Return the name of an instance's function, emitted."""
        name = f"f_{instance.name.replace('.', '_')}"
        if instance not in self._emitted:
            self._emitted.add(instance)
            self._texts.append(_Emitter(self).function(name, instance))
        return name


class _Emitter:
    """Emits one function; see `Emitter`. A handle is the text of an expression without side effects."""

    emits, leaves_at_once = True, False

    def __init__(self, functions: CppFunctions) -> None:
        self._functions = functions
        self._variables: list[str] = []
        self._lines: list[str] = []
        self._depth, self._count = 1, 0

    def function(self, name: str, instance: Instance) -> str:
        """Return the definition of an instance's function."""
        given = [part for kind in instance.arguments for part in flat(kind)]
        parameters = [f"{cpp_type(part)} a{i}" for i, part in enumerate(given)]
        results = [f"{cpp_type(part)} &r{i}" for i, part in enumerate(flat(instance.result or NONE))]
        self._functions.functions.emit(instance, self, [f"a{i}" for i in range(len(given))])
        head = f"static __device__ __forceinline__ int64_t {name}({', '.join(parameters + results)}) {{"
        return "\n".join([head, *self._variables, *self._lines, "}"])

    def _line(self, text: str) -> None:
        self._lines.append("  " * self._depth + text)

    def _new(self, kind: str, value: str) -> str:
        """Name a value."""
        self._count += 1
        self._line(f"const {kind} t{self._count} = {value};")
        return f"t{self._count}"

    def constant(self, kind: Scalar, value: Any) -> str:
        if isinstance(kind, Vector):
            return self.splat(self.constant(kind.element, value), kind)
        if kind == BOOL:
            return "true" if value else "false"
        if kind.is_float:
            return _float(float(value), kind.bits)
        value = int(value) & (1 << kind.bits) - 1
        if kind == UINT:
            return f"{value}ull"
        if kind.kind == "i" and value >> kind.bits - 1:
            value -= 1 << kind.bits
        text = "(-9223372036854775807ll - 1)" if value == -(2**63) else f"{value}ll"
        text = f"({text})" if value < 0 and text[0] == "-" else text
        return text if kind == INT else f"{cpp_type(kind)}({text})"

    def variable(self, kind: Scalar | Array) -> str:
        self._count += 1
        self._variables.append(f"  {cpp_type(kind)} v{self._count}{{}};")
        return f"v{self._count}"

    def read(self, variable: str) -> str:
        return self._new("auto", variable)

    def write(self, variable: str, value: str) -> None:
        self._line(f"{variable} = {value};")

    def cast(self, value: str, kind: Scalar, to: Scalar) -> str:
        if kind == to:
            return value
        if isinstance(kind, Vector) and isinstance(to, Vector):
            given, wanted = kind.element, to.element
            return self._each(to, lambda x: self.cast(x, given, wanted), value)
        assert isinstance(kind, Number)
        assert isinstance(to, Number)
        if to == BOOL:
            return self._new("bool", f"{value} != 0")
        if kind.is_float and not to.is_float:
            return self._new(cpp_type(to), f"{cpp_type(to)}(sigps::to_int({value}))")
        return self._new(cpp_type(to), f"{cpp_type(to)}({value})")

    def bits(self, value: str, to: Number) -> str:
        return self._new(cpp_type(to), f"sigps::{'of_bits' if to.is_float else 'bits_of'}({value})")

    def binary(self, op: str, kind: Scalar, a: str, b: str) -> str:
        if isinstance(kind, Vector):
            element = kind.element
            return self._each(kind, lambda x, y: self.binary(op, element, x, y), a, b)
        kind_name = cpp_type(kind)
        if kind.is_float and op == "*":
            return self._new(kind_name, f"sigps::times({a}, {b})")
        if kind.kind == "i" and op in (
            "+",
            "-",
            "*",
            "<<",
        ):  # which wrap around; in C++ only unsigned numbers do
            right = b if op == "<<" else f"uint64_t({b})"
            return self._new(kind_name, f"{kind_name}(uint64_t({a}) {op} {right})")
        return self._new(kind_name, f"{kind_name}({a} {op} {b})")

    def overflows(self, op: str, kind: Scalar, a: str, b: str) -> tuple[str, str]:
        name = {"+": "add", "-": "subtract", "*": "multiply"}[op]
        result = self.binary(op, kind, a, b)
        if isinstance(kind, Vector):
            bools = Vector(BOOL, kind.length)
            lost = self._each(bools, lambda x, y, z: f"sigps::overflows_{name}({x}, {y}, {z})", a, b, result)
            return result, lost
        return result, self._new("bool", f"sigps::overflows_{name}({a}, {b}, {result})")

    def compare(self, op: str, kind: Scalar, a: str, b: str) -> str:
        if isinstance(kind, Vector):
            return self._each(Vector(BOOL, kind.length), lambda x, y: f"{x} {op} {y}", a, b)
        return self._new("bool", f"{a} {op} {b}")

    def invert(self, value: str) -> str:
        return self._new("bool", f"!{value}")

    def select(self, condition: str, a: str, b: str, kind: Scalar) -> str:
        return self._new(cpp_type(kind), f"{condition} ? {a} : {b}")

    def choose(self, conditions: str, a: str, b: str, kind: Vector) -> str:
        return self._each(kind, lambda c, x, y: f"{c} ? {x} : {y}", conditions, a, b)

    def math(self, name: str, kind: Scalar, values: Sequence[str]) -> str:
        if isinstance(kind, Vector):
            element = kind.element
            return self._each(kind, lambda *numbers: self.math(name, element, numbers), *values)
        self._functions.math.add(name)
        if name == "neg":
            return self._new(cpp_type(kind), f"-{values[0]}")
        suffix = "f" if kind.bits == 32 else ""
        return self._new(cpp_type(kind), f"{name}{suffix}({', '.join(values)})")

    def load(self, array: str, kind: Array, at: str) -> str:
        return self._new(cpp_type(kind.element), f"{array}[{at}]")

    def store(self, array: str, kind: Array, at: str, value: str) -> None:
        if kind.is_shared:
            self._line("sigps::sync_warp();")
        self._line(f"{array}[{at}] = {value};")

    def _each(self, kind: Vector, compute: Callable[..., str], *vectors: str) -> str:
        """Return a vector computed number by number, from the numbers of others."""
        self._count += 1
        made = f"t{self._count}"
        self._line(f"{cpp_type(kind)} {made};")
        self._line(f"SIGPS_UNROLL({kind.length}) for (int i = 0; i < {kind.length}; ++i) {{")
        self._inside(
            lambda: self._line(f"{made}.v[i] = {compute(*(f'{vector}.v[i]' for vector in vectors))};")
        )
        self._line("}")
        return made

    def splat(self, value: str, kind: Vector) -> str:
        return self._each(kind, lambda: value)

    def pack(self, values: Sequence[str], kind: Vector) -> str:
        return self._new(cpp_type(kind), f"{{{{{', '.join(values)}}}}}")

    def item(self, vector: str, kind: Vector, at: str) -> str:
        return self._new(cpp_type(kind.element), f"{vector}.v[{at}]")

    def stretch(self, vector: str, kind: Vector, begin: int, count: int) -> str:
        return self.pack([f"{vector}.v[{begin + i}]" for i in range(count)], Vector(kind.element, count))

    def read_item(self, variable: str, kind: Vector, at: str) -> str:
        return self.item(variable, kind, at)

    def write_item(self, variable: str, kind: Vector, at: str, value: str) -> None:
        self._line(f"{variable}.v[{at}] = {value};")

    def some(self, vector: str, kind: Vector) -> str:
        self._count += 1
        self._line(f"bool t{self._count} = false;")
        self._line(f"SIGPS_UNROLL({kind.length}) for (int i = 0; i < {kind.length}; ++i)")
        self._line(f"  t{self._count} = t{self._count} || {vector}.v[i];")
        return f"t{self._count}"

    def size(self, array: str) -> str:
        raise NotImplementedError("arrays of a GPU have no length")

    def part(self, array: str, kind: Array, begin: str, end: str) -> str:
        return self._new(cpp_type(kind), f"{array} + {begin}")

    def scratch(self, element: Scalar, size: int) -> str:
        raise NotImplementedError("loops only")

    def lowest_bit(self, mask: str) -> str:
        raise NotImplementedError("loops only")

    def count_bits(self, mask: str) -> str:
        raise NotImplementedError("loops only")

    def prefetch(self, array: str, kind: Array, at: str) -> None:
        raise NotImplementedError("loops only")

    def exchange(self, array: str, kind: Array, at: str, value: str) -> str:
        raise NotImplementedError("loops only")

    def call(self, function: Instance, values: Sequence[str]) -> list[str]:
        return self._called(self._functions.name(function), values, list(flat(function.result or NONE)))

    def external(self, name: str, values: Sequence[str], results: Sequence[Scalar | Array]) -> list[str]:
        return self._called(name, values, results)

    def _called(self, name: str, values: Sequence[str], results: Sequence[Scalar | Array]) -> list[str]:
        found = []
        for part in results:
            self._count += 1
            self._line(f"{cpp_type(part)} t{self._count};")
            found.append(f"t{self._count}")
        return [*found, self._new("int64_t", f"{name}({', '.join([*values, *found])})")]

    def if_(self, condition: str, then: Block, otherwise: Block) -> None:
        self._line(f"if ({condition}) {{")
        self._inside(then)
        before = len(self._lines)
        self._line("} else {")
        self._inside(otherwise)
        if len(self._lines) == before + 1:
            self._lines.pop()
        self._line("}")

    def if_rarely(self, condition: str, then: Block) -> None:
        self.if_(condition, then, lambda: None)

    def interrupted(self) -> str:
        if _TURNS not in self._variables:
            self._variables.append(_TURNS)
        return self._new("bool", "sigps::is_interrupted(turns)")

    def loop(self, body: Block) -> None:
        self._line("while (true) {")
        self._inside(body)
        self._line("}")

    def _inside(self, body: Block) -> None:
        self._depth += 1
        body()
        self._depth -= 1

    def break_(self) -> None:
        self._line("break;")

    def continue_(self) -> None:
        self._line("continue;")

    def return_(self, values: Sequence[str]) -> None:
        for i, value in enumerate(values[:-1]):
            self._line(f"r{i} = {value};")
        self._line(f"return {values[-1]};")


_TURNS = "  uint32_t turns = 0;"


def _float(value: float, bits: int) -> str:
    kind = "float" if bits == 32 else "double"
    if math.isnan(value):
        return f"{kind}(sigps::not_a_number())"
    if math.isinf(value):
        return f"{kind}({'-' if value < 0 else ''}sigps::infinity())"
    text = value.hex()
    return f"{kind}({text})"
