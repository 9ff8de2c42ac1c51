"""Programs drawn from a grammar of what compute() may say, and one call of compute() as machine code and as C++."""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cells import program_of
from host_cpp import host_library

from sigps import Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import VertexProgram
from sigps.native.builder import Functions, Site
from sigps.native.cpp import CppFunctions, cpp_type
from sigps.native.kernel import Kernel
from sigps.native.marshal import Packed
from sigps.native.primitives import ProgramFunction
from sigps.native.types import BOOL, INT, NONE, Tuple, Vector, flat, scalar_of

FIELDS = """
i: State[int] = {i}
k: State[np.int32] = {k}
u: State[np.uint8] = {u}
f: State[float] = {f}
b: State[bool] = {b}
w: State[np.uint64] = {w}
m: State[float] = 0.0
z: State[float] = 0.0
v: State[Vector[float, 4]] = {v}
n: State[Vector[int, 4]] = {n}
def whole(self, a, c=3):
    if a > c:
        return a - c
    return a + self.i % 7
def real(self, a):
    return a * 0.5 + self.k
def either(self, a, b):
    c = 3
    if a > b:
        c = b
    elif a < 0:
        return 7
    return c * a
"""


class Drawing:
    """Draws the text of a compute() for one vertex, which reads and assigns ten states and fourteen locals."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0

    def program(self) -> Vertex:
        pick = self._random
        fields = FIELDS.format(
            i=pick.choice([0, 1, -1, 5, 2**40, -(2**62), 2**63 - 1, pick.randrange(-1000, 1000)]),
            k=pick.choice([0, 3, -7, 2**31 - 1, -(2**31), pick.randrange(-99, 99)]),
            u=pick.randrange(256),
            f=pick.choice([0.0, -0.0, 1.5, -2.25, 1e300, -1e-300, pick.uniform(-9, 9)]),
            b=pick.choice([True, False]),
            w=pick.choice([0, 7, 2**64 - 1, 2**63, pick.randrange(2**64)]),
            v=tuple(pick.choice([0.0, -0.0, 1.5, 1e300, pick.uniform(-9, 9)]) for _ in range(4)),
            n=tuple(pick.choice([0, 1, -1, 2**62, pick.randrange(-99, 99)]) for _ in range(4)),
        )
        lines = [f"i{n} = {pick.randrange(-9, 9)}" for n in range(3)]
        lines += [f"f{n} = {pick.uniform(-9, 9)!r}" for n in range(3)]
        lines += [f"b{n} = self.b" for n in range(3)]
        lines += [f"m0, m1 = {pick.choice(['1, 0.5', '0.5, 2', 'self.i, f0', 'f0, self.k', '1, 2'])}"]
        lines += ["v0 = self.v", "v1 = v0 * 0.5", "n0 = self.n"]
        for _ in range(pick.randrange(2, 7)):
            lines += self.statement(2)
        lines += [f"self.i = {self.whole(1)}", f"self.f = {self.real(2)}", f"self.b = {self.truth(2)}"]
        lines += [f"self.w = {self.unsigned(2)}", f"self.v = {self.vector(2)}", f"self.n = {self.wholes(1)}"]
        if pick.random() < 0.5:  # a local that is a float on one path alone is one on all
            lines += [
                "self.m = m0 * 4611686018427387904",
                f"self.z = m1 {pick.choice(['//', '%'])} {self.whole(0)}",
            ]
        lines.append("self.vote_to_halt()")
        return program_of("\n".join(lines), fields)

    def statement(self, depth: int) -> list[str]:
        pick = self._random
        kind = pick.randrange(14)
        if kind >= 12:
            return [self.mixed()]
        if kind >= 10:
            return [self.of_vectors()]
        if kind < 3:
            return [f"i{pick.randrange(3)} {self.assigns()} {self.whole(2)}"]
        if kind < 5:
            return [f"f{pick.randrange(3)} {self.assigns()} {self.real(2)}"]
        if kind == 5 and pick.random() < 0.4:
            return [f"self.w {self.assigns()} {self.unsigned(2)}"]
        if kind == 5:
            return [f"b{pick.randrange(3)} = {self.truth(2)}"]
        if kind == 6:
            target, value = pick.choice([("i", self.whole(2)), ("f", self.real(2)), ("b", self.truth(2))])
            return [f"self.{target} = {value}"]
        if depth == 0:
            return [f"i0, i1 = {self.whole(1)}, {self.whole(1)}"]
        inner = [line for _ in range(pick.randrange(1, 3)) for line in self.statement(depth - 1)]
        if kind == 7:
            self._loops += 1
            span = pick.choice(["3", "1, 4", "5, 0, -2"])
            leave = (
                [f"if {self.truth(1)}:", f"    {pick.choice(['break', 'continue'])}"]
                if pick.random() < 0.4
                else []
            )
            return [
                f"for j{self._loops} in range({span}):",
                *indented([*leave, *inner, f"i2 = j{self._loops}"]),
            ]
        other = self.statement(depth - 1)
        return [f"if {self.truth(2)}:", *indented(inner), "else:", *indented(other)]

    def mixed(self) -> str:
        """Draw an assignment to a local that is a float, a whole number, or a float where another path gives it one."""
        pick = self._random
        value = self.real(1) if pick.random() < 0.5 else self.whole(1)
        return pick.choice(
            [
                f"m{pick.randrange(2)} {self.assigns()} {value}", f"m0, m1 = {value}, m0",
                f"m1, i2 = m0, {self.whole(1)}",
                f"for m0 in ({self.whole(1)}, {self.real(0)}): f1 = m0 // 3", f"self.f = (m1 := {value}) // i0",
            ]
        )  # fmt: skip

    def of_vectors(self) -> str:
        pick = self._random
        position = pick.choice([*map(str, range(-4, 4)), f"{self.whole(1)} & 3", "i2"])
        return pick.choice(
            [
                f"v{pick.randrange(2)} {self.assigns()} {self.vector(2)}",
                f"v0[{position}] {self.assigns()} {self.real(1)}",
                f"n0 {self.assigns()} {self.wholes(1)}", f"n0[{position}] = {self.whole(1)}",
                f"self.v[{position}] += {self.real(1)}", f"self.n = {self.wholes(2)}",
            ]
        )  # fmt: skip

    def vector(self, depth: int) -> str:
        """Draw a vector of floats."""
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(["self.v", "v0", "v1", f"Vector[float, 4]({self.real(0)})"])
        a, b, x = self.vector(depth - 1), self.vector(depth - 1), self.real(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} // {b})", f"({a} % {b})",
                f"({a} * {x})", f"({x} - {a})", f"(-{a})", f"abs({a})", f"np.sqrt({a})", f"np.maximum({a}, {b})",
                f"np.minimum({a}, {x})", f"np.where({a} < {b}, {a}, {x})", f"({a} + {self.wholes(0)})",
                f"({a} if {self.truth(depth - 1)} else {b})", f"Vector[float, 4](({x}, {x}, 1.5, {a}[1]))",
            ]
        )  # fmt: skip

    def wholes(self, depth: int) -> str:
        """Draw a vector of whole numbers."""
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(["self.n", "n0", f"Vector[int, 4]({self.whole(0)})"])
        a, b, i = self.wholes(depth - 1), self.wholes(depth - 1), self.whole(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {b})", f"({a} % {b})", f"({a} & {b})",
                f"({a} | {i})", f"({a} ^ {b})", f"({a} >> 3)", f"({a} - {i})", f"(-{a})", f"abs({a})",
                f"np.minimum({a}, {b})", f"np.where({a} == {b}, {a}, {i})",
                f"({a} if {self.truth(depth - 1)} else {b})",
            ]
        )  # fmt: skip

    def assigns(self) -> str:
        return self._random.choice(["=", "=", "+=", "-=", "*="])

    def whole(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(
                ["self.i", "self.k", "self.u", "i0", "i1", "i2", "7", "-3", "0", "1099511627776"]
            )
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {b})", f"({a} % {b})", f"({a} & {b})",
                f"({a} | {b})", f"({a} ^ {b})", f"({a} << {pick.randrange(9)})", f"({a} >> ({b} & 31))",
                f"(-{a})", f"(~{a})", f"abs({a})", f"wrapping({a} * {b} - {a})",
                f"wrapping(-(({a}) << 9) ** 3)", f"min({a}, {b})", f"max({a}, {b}, 3)",
                f"({a}) ** {pick.randrange(4)}",
                f"({a} if {self.truth(depth - 1)} else {b})", f"int({self.real(depth - 1)})",
                f"round({self.real(depth - 1)})", f"({a} + ({self.truth(depth - 1)}))", f"self.whole({a})",
                f"divmod({a}, {b})[{pick.randrange(2)}]", f"math.floor({self.real(depth - 1)})",
                f"sum({self.wholes(depth - 1)})", f"max({self.wholes(depth - 1)})",
                f"{self.wholes(depth - 1)}[{pick.randrange(-4, 4)}]", f"int(np.argmin({self.vector(depth - 1)}))",
            ]
        )  # fmt: skip

    def unsigned(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(
                ["self.w", "np.uint64(self.u)", "np.uint64(0x9E3779B97F4A7C15)", "np.uint64(abs(i0))"]
            )
        a, b = self.unsigned(depth - 1), self.unsigned(depth - 1)
        n = self.whole(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {b})", f"({a} % {b})", f"({a} & {b})",
                f"({a} | {b})", f"({a} ^ {b})", f"({a} << {pick.randrange(70)})", f"({a} >> ({n} & 63))", f"(~{a})",
                f"({a} + {n})", f"({n} * {a})", f"({a}) ** {pick.randrange(4)}", f"min({a}, {b})", f"abs({a})",
                f"({a} if {self.truth(depth - 1)} else {b})",
            ]
        )  # fmt: skip

    def real(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(
                ["self.f", "f0", "f1", "f2", "0.1", "-2.5", "1e10", "0.0", "float(m0)", "float(m1)"]
            )
        if pick.random() < 0.15:
            m, n = f"m{pick.randrange(2)}", self.whole(depth - 1)
            return pick.choice(
                [
                    f"float({m} // {n})", f"float({m} % 3)", f"float({m} * {m})", f"float({m} + {n})", f"float(-{m})",
                    f"float(({n} if {self.truth(depth - 1)} else {self.real(0)}) // {self.whole(0)})",
                    f"float(min({n}, {m}) // 7)", f"float(({m} or {n}) * {n})", f"(self.either({n}, {m}) / 3)",
                    f"float(sorted(({m}, {n}))[1] % {n})", f"float(({m}, {n})[i0 & 1] // {n})",
                    f"float(max({m}, {n}, key=abs) // 3)",
                ]
            )  # fmt: skip
        a, b = self.real(depth - 1), self.real(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} // {b})", f"({a} % {b})",
                f"(-{a})", f"abs({a})", f"min({a}, {b})", f"max({a}, {b})", f"math.sqrt(abs({a}))",
                f"({a} if {self.truth(depth - 1)} else {b})", "float(self.u)", "float(self.w)",
                f"math.exp({a})", f"math.log({a})", f"math.hypot({a}, {b})",
                f"math.gamma({a})", f"({a}) ** {b}", f"np.sqrt({a})", f"({a} * self.k)", f"self.real({a})",
                f"math.fmod({a}, 3.0)", f"math.copysign({a}, {b})", f"math.atan2({a}, {b})", f"({a}) ** 2",
                f"sum({self.vector(depth - 1)})", f"min({self.vector(depth - 1)})",
                f"({self.vector(depth - 1)} @ {self.vector(0)})", f"{self.vector(depth - 1)}[{pick.randrange(-4, 4)}]",
            ]
        )  # fmt: skip

    def truth(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(
                [
                    "self.b",
                    "b0",
                    "b1",
                    "b2",
                    "True",
                    "False",
                    "self.u > 100",
                    "self.w > i1",
                    "self.w == self.u",
                    "i2 <= self.w",
                ]
            )
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        x, y = self.real(depth - 1), self.real(depth - 1)
        p, q = self.truth(depth - 1), self.truth(depth - 1)
        compare = pick.choice(["<", "<=", ">", ">=", "==", "!="])
        return pick.choice(
            [
                f"({a} {compare} {b})", f"({x} {compare} {y})", f"({a} {compare} {x})",
                f"({x} < {a} <= {y})", f"({p} and {q})", f"({p} or {q})", f"(not {p})",
                f"({a} < {b} <= {self.whole(0)})", f"bool({a})", f"({p} != {q})", f"({a} in (1, 2, self.i))",
                f"any({self.vector(depth - 1)} {compare} {self.vector(0)})", f"({a} in {self.wholes(0)})",
                f"all({self.wholes(depth - 1)} {compare} {a})",
            ]
        )  # fmt: skip


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@dataclass(frozen=True)
class Called:
    """What one call of compute() left.

    Attributes:
        states: The states afterwards.
        fault: Where and how it had no result: file, line and kind; None where it had one.
    """

    states: dict[str, Any]
    fault: Site | None


def call_compute(program: Vertex) -> Called:
    """Call a program's compute() once, as machine code, for the one vertex of a graph without edges."""
    derived = analyse(program)
    functions = Functions(derived.module, derived.namespace)
    compute = ProgramFunction("compute")

    def call(env, vertex, states):  # type: ignore[no-untyped-def]
        (state, _, _, _), fault = compute(env, (), (), vertex, states, (), False, (), ())  # type: ignore[operator]
        return state, fault

    given = zip(derived.states, derived.state_dtypes, strict=True)
    first = tuple(Packed.of(field.default, dtype) for field, dtype in given)
    state, fault = Kernel(call, f"drawn {derived.key}", functions)((0, 1, 0), (0, 0, 0), first)
    return _called(derived, functions, state, fault)


def call_on_host(programs: Sequence[Vertex]) -> list[Called]:
    """The same for several programs, emitted as C++ and compiled for the host."""
    sources, made = ['#include "arithmetic.cuh"', '#include "rows.cuh"'], []
    for i, program in enumerate(programs):
        derived = analyse(program)
        functions = Functions(derived.module, derived.namespace)
        cpp = CppFunctions(functions)
        env, nothing = Tuple((INT,) * 3), Tuple(())
        states = Tuple(tuple(scalar_of(d) for d in derived.state_dtypes))
        instance = functions.instance(
            "compute", (env, nothing, nothing, env, states, nothing, BOOL, nothing, nothing)
        )
        name, results = cpp.name(instance), list(flat(instance.result or NONE))
        given = _places(list(flat(states)))
        loads = [
            f"sigps::load<{cpp_type(k)}>(given, {at})" for at, k in zip(given, flat(states), strict=False)
        ]
        parts = [f"r{at}" for at in range(len(results))]
        arguments = ["0", "1", "0", "0", "0", "0", *loads, "false", *parts]
        sources += [
            f"namespace p{i} {{",
            cpp.text,
            "}",
            f'extern "C" void run_{i}(const void *given, void *out) {{',
        ]
        sources += [f"{cpp_type(kind)} {part};" for kind, part in zip(results, parts, strict=True)]
        sources.append(f"const int64_t fault = p{i}::{name}({', '.join(arguments)});")
        sources += [
            f"sigps::store<{cpp_type(kind)}>(out, {at}, {part});"
            for at, kind, part in zip(_places(results), results, parts, strict=False)
        ]
        sources += [f"sigps::store<int64_t>(out, {_places(results)[-1]}, fault);", "}"]
        made.append((derived, functions, results))
    library = host_library("\n".join(sources))
    found = []
    for i, (derived, functions, results) in enumerate(made):
        dtypes = [np.dtype(d) for d in derived.state_dtypes]
        begins, ends = _places([scalar_of(d) for d in dtypes]), _places(results)
        given, out = np.zeros(begins[-1], np.uint8), np.zeros(ends[-1] + 8, np.uint8)
        for at, field, dtype in zip(begins, derived.states, dtypes, strict=False):
            given[at : at + dtype.itemsize].view(dtype.base)[:] = field.default
        getattr(library, f"run_{i}")(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        state = [
            out[at : at + k.dtype.itemsize].view(k.dtype.base).reshape(k.dtype.shape)
            for at, k in zip(ends, results[: len(dtypes)], strict=False)
        ]
        found.append(_called(derived, functions, state, int(out[-8:].view(np.int64)[0])))
    return found


def _places(kinds: Sequence[Any]) -> list[int]:
    """Return where values begin that lie in cells of eight bytes, and where they end."""
    cells = [kind.length if isinstance(kind, Vector) else 1 for kind in kinds]
    return [8 * n for n in itertools.accumulate(cells, initial=0)]


def _called(derived: VertexProgram, functions: Functions, state: Sequence[Any], fault: int) -> Called:
    named = zip(derived.states, derived.state_dtypes, state, strict=True)
    with np.errstate(all="ignore"):
        states = {field.name: np.asarray(value).astype(dtype.base).tolist() for field, dtype, value in named}
    return Called(states, functions.sites[fault - 1] if fault else None)
