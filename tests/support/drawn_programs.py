"""Programs drawn from a grammar of what compute() may say, and one call of compute() as machine code and as C++."""

from __future__ import annotations

import ctypes
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
from sigps.native.primitives import ProgramFunction
from sigps.native.types import BOOL, INT, NONE, Number, Tuple, flat

FIELDS = """
i: State[int] = {i}
k: State[np.int32] = {k}
u: State[np.uint8] = {u}
f: State[float] = {f}
b: State[bool] = {b}
w: State[np.uint64] = {w}
def whole(self, a, c=3):
    if a > c:
        return a - c
    return a + self.i % 7
def real(self, a):
    return a * 0.5 + self.k
"""


class Drawing:
    """Draws the text of a compute() for one vertex, which reads and assigns six states and nine locals."""

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
        )
        lines = [f"i{n} = {pick.randrange(-9, 9)}" for n in range(3)]
        lines += [f"f{n} = {pick.uniform(-9, 9)!r}" for n in range(3)]
        lines += [f"b{n} = self.b" for n in range(3)]
        for _ in range(pick.randrange(2, 7)):
            lines += self.statement(2)
        lines += [f"self.i = {self.whole(1)}", f"self.f = {self.real(2)}", f"self.b = {self.truth(2)}"]
        lines.append(f"self.w = {self.unsigned(2)}")
        lines.append("self.vote_to_halt()")
        return program_of("\n".join(lines), fields)

    def statement(self, depth: int) -> list[str]:
        pick = self._random
        kind = pick.randrange(10)
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
            return pick.choice(["self.f", "f0", "f1", "f2", "0.1", "-2.5", "1e10", "0.0"])
        a, b = self.real(depth - 1), self.real(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} // {b})", f"({a} % {b})",
                f"(-{a})", f"abs({a})", f"min({a}, {b})", f"max({a}, {b})", f"math.sqrt(abs({a}))",
                f"({a} if {self.truth(depth - 1)} else {b})", "float(self.u)", "float(self.w)",
                f"math.exp({a})", f"math.log({a})", f"math.hypot({a}, {b})",
                f"math.gamma({a})", f"({a}) ** {b}", f"np.sqrt({a})", f"({a} * self.k)", f"self.real({a})",
                f"math.fmod({a}, 3.0)", f"math.copysign({a}, {b})", f"math.atan2({a}, {b})", f"({a}) ** 2",
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

    first = tuple(d.type(f.default) for f, d in zip(derived.states, derived.state_dtypes, strict=True))
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
        states = Tuple(tuple(Number.of(d) for d in derived.state_dtypes))
        instance = functions.instance(
            "compute", (env, nothing, nothing, env, states, nothing, BOOL, nothing, nothing)
        )
        name, results = cpp.name(instance), list(flat(instance.result or NONE))
        loads = [f"sigps::load<{cpp_type(kind)}>(given, {8 * at})" for at, kind in enumerate(flat(states))]
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
            f"sigps::store<{cpp_type(kind)}>(out, {8 * at}, {part});"
            for at, (kind, part) in enumerate(zip(results, parts, strict=True))
        ]
        sources += [f"sigps::store<int64_t>(out, {8 * len(results)}, fault);", "}"]
        made.append((derived, functions, results))
    library = host_library("\n".join(sources))
    found = []
    for i, (derived, functions, results) in enumerate(made):
        given, out = np.zeros(len(derived.states), np.int64), np.zeros(len(results) + 1, np.int64)
        for at, (field, dtype) in enumerate(zip(derived.states, derived.state_dtypes, strict=True)):
            given[at : at + 1].view(dtype)[0] = field.default
        getattr(library, f"run_{i}")(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        state = [out[at : at + 1].view(k.dtype)[0] for at, k in enumerate(results[: len(derived.states)])]
        found.append(_called(derived, functions, state, int(out[-1])))
    return found


def _called(derived: VertexProgram, functions: Functions, state: Sequence[Any], fault: int) -> Called:
    named = zip(derived.states, derived.state_dtypes, state, strict=True)
    with np.errstate(all="ignore"):
        states = {field.name: np.asarray(value).astype(dtype).item() for field, dtype, value in named}
    return Called(states, functions.sites[fault - 1] if fault else None)
