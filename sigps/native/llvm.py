"""An emitter of LLVM IR: a module of functions that are inlined wherever they are called.

A function takes the numbers of its arguments, and of each array a pointer and its length; it returns a structure of
the parts of its result, and its fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from sigps.native.builder import Functions, Instance
from sigps.native.emitter import Block
from sigps.native.machine import INTERRUPTED
from sigps.native.marshal import DATA_OFFSET, LENGTHS_OFFSET, Cell
from sigps.native.types import BOOL, INT, NONE, Array, Number, Type, flat

__all__ = ["LlvmModule", "argument_types", "llvm_type"]

_INTRINSICS = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign"}
_I64 = ir.IntType(64)


class _View(NamedTuple):
    pointer: Any
    length: Any


def llvm_type(kind: Number | Array) -> Any:
    """Return the type of a number while it is computed with; of an array that of its pointer."""
    if isinstance(kind, Array):
        return ir.PointerType()
    if kind.is_float:
        return ir.FloatType() if kind.bits == 32 else ir.DoubleType()
    return ir.IntType(1 if kind == BOOL else kind.bits)


def argument_types(kinds: Sequence[Type]) -> list[Any]:
    """Return the types of a function's arguments."""
    found = []
    for kind in kinds:
        for part in flat(kind):
            found += [llvm_type(part), _I64] if isinstance(part, Array) else [llvm_type(part)]
    return found


class LlvmModule:
    """The instances of some functions, emitted as they are called.

    Args:
        functions: The functions.
        prefix: What the names of all begin with.
    """

    def __init__(self, functions: Functions, prefix: str) -> None:
        self.module = ir.Module(prefix)
        self.functions, self.prefix = functions, prefix
        self._emitted: dict[Instance, Any] = {}

    def function(self, instance: Instance) -> Any:
        """Return the LLVM function of an instance."""
        if instance not in self._emitted:
            results = argument_types([instance.result or NONE])
            kind = ir.FunctionType(ir.LiteralStructType([*results, _I64]), argument_types(instance.arguments))
            function = ir.Function(self.module, kind, f"{self.prefix}.{instance.name}")
            function.linkage = "internal"
            function.attributes.add("alwaysinline")
            function.attributes.add("nounwind")
            self._emitted[instance] = function
            _Emitter(self, function).body(instance)
        return self._emitted[instance]

    def add_entry(self, name: str, instance: Instance, cells: Sequence[Cell]) -> None:
        """Add the function that Python calls: it takes the addresses of the cells of arguments, and of the result."""
        pointer = ir.PointerType()
        entry = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), name)
        builder = ir.IRBuilder(entry.append_basic_block())
        given: list[Any] = []
        for i, cell in enumerate(cells):
            given += _loaded(builder, builder.gep(entry.args[0], [_I64(i)], source_etype=_I64), cell)
        result = builder.call(self.function(instance), given)
        kinds = [*flat(instance.result or NONE), INT]
        for i, kind in enumerate(kinds):
            value = _widened(builder, builder.extract_value(result, i), kind)
            builder.store(value, builder.gep(entry.args[1], [_I64(i)], source_etype=_I64))
        builder.ret_void()


def _loaded(builder: Any, place: Any, cell: Cell) -> list[Any]:
    """Return the parts of an argument, whose cell is at an address."""
    kind = cell.kind
    if kind is None:
        array = builder.load(place, typ=ir.PointerType())
        data, lengths = (
            builder.load(builder.gep(array, [_I64(at)], source_etype=ir.IntType(8)), typ=ir.PointerType())
            for at in (DATA_OFFSET, LENGTHS_OFFSET)
        )
        length = builder.load(lengths, typ=_I64)
        found = []
        for at, _ in cell.parts:
            found += [builder.gep(data, [_I64(at)], source_etype=ir.IntType(8)), length]
        return found
    if kind.is_float:
        value = builder.load(place, typ=ir.DoubleType())
        return [builder.fptrunc(value, llvm_type(kind)) if kind.bits == 32 else value]
    value = builder.load(place, typ=ir.IntType(8) if kind == BOOL else _I64)
    goal = llvm_type(kind)
    return [value if goal == value.type else builder.trunc(value, goal)]


def _widened(builder: Any, value: Any, kind: Number | Array) -> Any:
    """Return a number as its cell has it."""
    assert isinstance(kind, Number)
    if kind.is_float:
        return builder.fpext(value, ir.DoubleType()) if kind.bits == 32 else value
    if kind.bits == 64:
        return value
    return builder.sext(value, _I64) if kind.kind == "i" else builder.zext(value, _I64)


class _Emitter:
    """Emits one function; see `Emitter`."""

    emits = True

    def __init__(self, module: LlvmModule, function: Any) -> None:
        self._module, self._function = module, function
        self._entry = function.append_basic_block("entry")
        self._builder = ir.IRBuilder(function.append_basic_block("body"))
        self._flags: tuple[str, ...] = ()
        self._loops: list[tuple[Any, Any]] = []

    def body(self, instance: Instance) -> None:
        given, arguments = iter(self._function.args), []
        for kind in instance.arguments:
            for part in flat(kind):
                is_array = isinstance(part, Array)
                arguments.append(_View(next(given), next(given)) if is_array else next(given))
        self._flags = ("reassoc",) if instance.reorders else ()
        first = self._builder.block
        self._module.functions.emit(instance, self, arguments)
        if not self._builder.block.is_terminated:
            self._builder.unreachable()
        ir.IRBuilder(self._entry).branch(first)

    def constant(self, kind: Number, value: Any) -> Any:
        if kind.is_float:
            return ir.Constant(llvm_type(kind), float(value))
        bits = llvm_type(kind).width
        value = int(value) & (1 << bits) - 1
        if bits > 1 and kind.kind != "u" and value >> bits - 1:
            value -= 1 << bits
        return ir.Constant(llvm_type(kind), value)

    def variable(self, kind: Number | Array) -> Any:
        if isinstance(kind, Array):
            return _View(self._slot(ir.PointerType()), self._slot(_I64))
        return self._slot(llvm_type(kind))

    def _slot(self, kind: Any) -> Any:
        builder = ir.IRBuilder(self._entry)
        slot = builder.alloca(kind)
        builder.store(ir.Constant(kind, None), slot)
        slot.sigps_type = kind
        return slot

    def read(self, variable: Any) -> Any:
        if isinstance(variable, _View):
            return _View(*map(self.read, variable))
        return self._builder.load(variable, typ=variable.sigps_type)

    def write(self, variable: Any, value: Any) -> None:
        if isinstance(variable, _View):
            for slot, part in zip(variable, value, strict=True):
                self.write(slot, part)
        else:
            self._builder.store(value, variable)

    def cast(self, value: Any, kind: Number, to: Number) -> Any:
        b, goal = self._builder, llvm_type(to)
        if kind == to:
            return value
        if to == BOOL:
            return self.compare("!=", kind, value, self.constant(kind, 0))
        if kind.is_float and to.is_float:
            return b.fptrunc(value, goal) if to.bits < kind.bits else b.fpext(value, goal)
        if kind.is_float:
            name = f"llvm.fpto{'s' if to.kind == 'i' else 'u'}i.sat.{goal}.{_suffix(kind)}"
            return b.call(self._external(name, goal, [llvm_type(kind)]), [value])
        if to.is_float:
            return b.sitofp(value, goal) if kind.kind == "i" else b.uitofp(value, goal)
        if llvm_type(kind).width >= goal.width:
            return value if llvm_type(kind).width == goal.width else b.trunc(value, goal)
        return b.sext(value, goal) if kind.kind == "i" else b.zext(value, goal)

    def binary(self, op: str, kind: Number, a: Any, b: Any) -> Any:
        builder = self._builder
        if kind.is_float:
            made = {"+": builder.fadd, "-": builder.fsub, "*": builder.fmul, "/": builder.fdiv}[op]
            return made(a, b, flags=self._flags)
        signed = kind.kind == "i"
        made = {
            "+": builder.add, "-": builder.sub, "*": builder.mul, "&": builder.and_, "|": builder.or_,
            "^": builder.xor, "<<": builder.shl, ">>": builder.ashr if signed else builder.lshr,
            "/": builder.sdiv if signed else builder.udiv, "%": builder.srem if signed else builder.urem,
        }[op]  # fmt: skip
        return made(a, b)

    def overflows(self, op: str, kind: Number, a: Any, b: Any) -> tuple[Any, Any]:
        b_ = self._builder
        made = {"+": b_.sadd_with_overflow, "-": b_.ssub_with_overflow, "*": b_.smul_with_overflow}[op]
        both = made(a, b)
        return b_.extract_value(both, 0), b_.extract_value(both, 1)

    def compare(self, op: str, kind: Number, a: Any, b: Any) -> Any:
        builder = self._builder
        if kind.is_float:
            made = builder.fcmp_unordered if op == "!=" else builder.fcmp_ordered
            return made(op, a, b)
        return (builder.icmp_signed if kind.kind == "i" else builder.icmp_unsigned)(op, a, b)

    def invert(self, value: Any) -> Any:
        return self._builder.not_(value)

    def select(self, condition: Any, a: Any, b: Any, kind: Number) -> Any:
        return self._builder.select(condition, a, b)

    def math(self, name: str, kind: Number, values: Sequence[Any]) -> Any:
        if name == "neg":
            return self._builder.fneg(values[0])
        goal = llvm_type(kind)
        if name == "fmod":
            return self._builder.frem(*values)
        called = f"llvm.{name}.{_suffix(kind)}" if name in _INTRINSICS else name + "f" * (kind.bits == 32)
        return self._builder.call(self._external(called, goal, [goal] * len(values)), values)

    def _external(self, name: str, result: Any, arguments: list[Any]) -> Any:
        known = self._module.module.globals.get(name)
        if known is None:
            known = ir.Function(self._module.module, ir.FunctionType(result, arguments), name)
        return known

    def _element(self, array: Any, kind: Array, at: Any) -> tuple[Any, Any]:
        """Return the address of an element, and its type in memory."""
        stored = ir.IntType(8) if kind.element == BOOL else llvm_type(kind.element)
        if kind.stride is None:
            return self._builder.gep(array.pointer, [at], source_etype=stored), stored
        offset = self._builder.mul(at, _I64(kind.stride))
        return self._builder.gep(array.pointer, [offset], source_etype=ir.IntType(8)), stored

    def load(self, array: Any, kind: Array, at: Any) -> Any:
        place, stored = self._element(array, kind, at)
        value = self._builder.load(place, typ=stored)
        return self._builder.trunc(value, ir.IntType(1)) if kind.element == BOOL else value

    def store(self, array: Any, kind: Array, at: Any, value: Any) -> None:
        place, stored = self._element(array, kind, at)
        self._builder.store(self._builder.zext(value, stored) if kind.element == BOOL else value, place)

    def size(self, array: Any) -> Any:
        return array.length

    def part(self, array: Any, kind: Array, begin: Any, end: Any) -> Any:
        return _View(self._element(array, kind, begin)[0], self._builder.sub(end, begin))

    def scratch(self, element: Number, size: int) -> Any:
        builder = ir.IRBuilder(self._entry)
        return _View(builder.alloca(llvm_type(element), size=_I64(size)), _I64(size))

    def lowest_bit(self, mask: Any) -> Any:
        count = self._external("llvm.cttz.i64", _I64, [_I64, ir.IntType(1)])
        return self._builder.call(count, [mask, ir.IntType(1)(1)])

    def prefetch(self, array: Any, kind: Array, at: Any) -> None:
        word = ir.IntType(32)
        load = self._external("llvm.prefetch.p0", ir.VoidType(), [ir.PointerType(), word, word, word])
        self._builder.call(load, [self._element(array, kind, at)[0], word(0), word(3), word(1)])

    def call(self, function: Instance, values: Sequence[Any]) -> list[Any]:
        result = self._builder.call(self._module.function(function), _parts(values))
        count = len(self._module.function(function).function_type.return_type.elements)
        parts = iter([self._builder.extract_value(result, i) for i in range(count)])
        kinds = flat(function.result or NONE)
        found = [_View(next(parts), next(parts)) if isinstance(k, Array) else next(parts) for k in kinds]
        return [*found, next(parts)]

    def external(self, name: str, values: Sequence[Any], results: Sequence[Number | Array]) -> list[Any]:
        raise NotImplementedError("a GPU's only")

    def if_rarely(self, condition: Any, then: Block) -> None:
        self.if_(condition, then, lambda: None, weights=(1, 1 << 20))

    def if_(
        self, condition: Any, then: Block, otherwise: Block, weights: tuple[int, int] | None = None
    ) -> None:
        blocks = [self._function.append_basic_block() for _ in range(3)]
        branch = self._builder.cbranch(condition, *blocks[:2])
        if weights is not None:
            branch.set_weights(weights)
        for block, emit in zip(blocks, (then, otherwise), strict=False):
            self._builder.position_at_end(block)
            emit()
            if not self._builder.block.is_terminated:
                self._builder.branch(blocks[2])
        self._builder.position_at_end(blocks[2])

    def interrupted(self) -> Any:
        module = self._module.module
        flag = module.globals.get(INTERRUPTED) or ir.GlobalVariable(module, ir.IntType(8), INTERRUPTED)
        value = self._builder.load_atomic(flag, "monotonic", 1, typ=ir.IntType(8))
        return self._builder.icmp_unsigned("!=", value, ir.IntType(8)(0))

    def loop(self, body: Block) -> None:
        begin, end = (self._function.append_basic_block() for _ in range(2))
        self._builder.branch(begin)
        self._builder.position_at_end(begin)
        self._loops.append((begin, end))
        body()
        self._loops.pop()
        self._builder.branch(begin)
        self._builder.position_at_end(end)

    def break_(self) -> None:
        self._leave(self._loops[-1][1])

    def continue_(self) -> None:
        self._leave(self._loops[-1][0])

    def _leave(self, block: Any) -> None:
        self._builder.branch(block)
        self._builder.position_at_end(self._function.append_basic_block())

    def return_(self, values: Sequence[Any]) -> None:
        result: Any = ir.Constant(self._function.function_type.return_type, ir.Undefined)
        for i, value in enumerate(_parts(values)):
            result = self._builder.insert_value(result, value, i)
        self._builder.ret(result)
        self._builder.position_at_end(self._function.append_basic_block())


def _parts(values: Sequence[Any]) -> list[Any]:
    """Return numbers, and pointers and lengths of arrays, one after the other."""
    found: list[Any] = []
    for value in values:
        found += value if isinstance(value, _View) else [value]
    return found


def _suffix(kind: Number) -> str:
    return f"f{kind.bits}"
