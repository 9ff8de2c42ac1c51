"""Programs drawn from a grammar of what compute() may say, and one call of compute() as machine code."""

from __future__ import annotations

import ctypes
import functools
import random
from typing import Any

import numpy as np
from cells import program_of
from llvmlite import binding, ir

from sigps import Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.native.builder import Functions
from sigps.native.llvm import LlvmModule, llvm_type
from sigps.native.types import BOOL, INT, Number, Tuple, flat

FIELDS = """
i: State[int] = {i}
k: State[np.int32] = {k}
u: State[np.uint8] = {u}
f: State[float] = {f}
b: State[bool] = {b}
def whole(self, a, c=3):
    if a > c:
        return a - c
    return a + self.i % 7
def real(self, a):
    return a * 0.5 + self.k
"""


class Drawing:
    """Draws the text of a compute() for one vertex, which reads and assigns five states and nine locals."""

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
        )
        lines = [f"i{n} = {pick.randrange(-9, 9)}" for n in range(3)]
        lines += [f"f{n} = {pick.uniform(-9, 9)!r}" for n in range(3)]
        lines += [f"b{n} = self.b" for n in range(3)]
        for _ in range(pick.randrange(2, 7)):
            lines += self.statement(2)
        lines += [f"self.i = {self.whole(1)}", f"self.f = {self.real(2)}", f"self.b = {self.truth(2)}"]
        lines.append("self.vote_to_halt()")
        return program_of("\n".join(lines), fields)

    def statement(self, depth: int) -> list[str]:
        pick = self._random
        kind = pick.randrange(10)
        if kind < 3:
            return [f"i{pick.randrange(3)} {self.assigns()} {self.whole(2)}"]
        if kind < 5:
            return [f"f{pick.randrange(3)} {self.assigns()} {self.real(2)}"]
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
                f"(-{a})", f"(~{a})", f"abs({a})", f"min({a}, {b})", f"max({a}, {b}, 3)",
                f"({a}) ** {pick.randrange(4)}",
                f"({a} if {self.truth(depth - 1)} else {b})", f"int({self.real(depth - 1)})",
                f"round({self.real(depth - 1)})", f"({a} + ({self.truth(depth - 1)}))", f"self.whole({a})",
                f"divmod({a}, {b})[{pick.randrange(2)}]", f"math.floor({self.real(depth - 1)})",
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
                f"({a} if {self.truth(depth - 1)} else {b})", "float(self.u)", f"({a} * self.k)", f"self.real({a})",
                f"math.fmod({a}, 3.0)", f"math.copysign({a}, {b})", f"math.atan2({a}, {b})", f"({a}) ** 2",
            ]
        )  # fmt: skip

    def truth(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(["self.b", "b0", "b1", "b2", "True", "False", "self.u > 100"])
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        x, y = self.real(depth - 1), self.real(depth - 1)
        p, q = self.truth(depth - 1), self.truth(depth - 1)
        compare = pick.choice(["<", "<=", ">", ">=", "==", "!="])
        return pick.choice(
            [
                f"({a} {compare} {b})", f"({x} {compare} {y})", f"({p} and {q})", f"({p} or {q})", f"(not {p})",
                f"({a} < {b} <= {self.whole(0)})", f"bool({a})", f"({p} != {q})", f"({a} in (1, 2, self.i))",
            ]
        )  # fmt: skip


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def call_compute(program: Vertex) -> tuple[dict[str, Any], tuple[str, int, int] | None]:
    """Call a program's compute() once, for the one vertex of a graph without edges.

    Returns:
        The states afterwards, and where and how it had no result: file, line and kind; None where it had one.
    """
    derived = analyse(program)
    functions = Functions(derived.module, derived.namespace)
    env = Tuple((INT,) * 3)
    states = Tuple(tuple(Number.of(d) for d in derived.state_dtypes))
    nothing = Tuple(())
    given = (env, nothing, nothing, env, states, nothing, BOOL, nothing, nothing)
    instance = functions.instance("compute", given)
    module = LlvmModule(functions, "drawn")
    compute = module.function(instance)
    pointer = ir.PointerType()
    entry = ir.Function(module.module, ir.FunctionType(ir.VoidType(), [pointer] * 2), "entry")
    builder = ir.IRBuilder(entry.append_basic_block())
    parts = [part for kind in given for part in flat(kind)]
    arguments = [_load(builder, entry.args[0], i, part) for i, part in enumerate(parts)]
    result = builder.call(compute, arguments)
    stored = [*flat(instance.result), INT]
    for i, part in enumerate(stored):
        place = builder.gep(entry.args[1], [ir.Constant(ir.IntType(64), 8 * i)], source_etype=ir.IntType(8))
        value = builder.extract_value(result, i)
        builder.store(builder.zext(value, ir.IntType(8)) if part == BOOL else value, place)
    builder.ret_void()
    first = [(0, np.int64), (1, np.int64), (0, np.int64), (0, np.int64), (0, np.int64), (0, np.int64)]
    first += [(field.default, d) for field, d in zip(derived.states, derived.state_dtypes, strict=True)]
    cells, out = np.zeros(len(parts), np.int64), np.zeros(len(stored), np.int64)
    for i, (value, dtype) in enumerate(first):
        cells[i : i + 1].view(dtype)[0] = value
    engine = _machine(str(module.module))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("entry"))(
        cells.ctypes.data, out.ctypes.data
    )
    named = zip([field.name for field in derived.states], derived.state_dtypes, strict=True)
    found = {name: out[i : i + 1].view(dtype)[0].item() for i, (name, dtype) in enumerate(named)}
    fault = int(out[-1])
    return found, functions.sites[fault - 1] if fault else None


def _load(builder: Any, base: Any, i: int, part: Any) -> Any:
    place = builder.gep(base, [ir.Constant(ir.IntType(64), 8 * i)], source_etype=ir.IntType(8))
    if part == BOOL:
        return builder.trunc(builder.load(place, typ=ir.IntType(8)), ir.IntType(1))
    return builder.load(place, typ=llvm_type(part))


@functools.cache
def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


def _machine(text: str) -> Any:
    module = binding.parse_assembly(text)
    machine = _target().create_target_machine(opt=2)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
