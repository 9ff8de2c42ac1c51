"""An emitter of LLVM IR: a module of functions that are inlined wherever they are called.

A function takes the numbers and vectors of its arguments, and of each array a pointer and its length; it returns a
structure of the parts of its result, and its fault. Vectors are LLVM's, in registers where they fit; variables of bools
have a byte each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from sigps.native.builder import Functions, Instance
from sigps.native.emitter import Block
from sigps.native.machine import INTERRUPTED
from sigps.native.marshal import DATA_OFFSET, LENGTHS_OFFSET, Cell
from sigps.native.types import BOOL, INT, NONE, Array, Number, Scalar, Type, Vector, flat
from sigps.native.vectors import UNROLLED

__all__ = ["LlvmModule", "argument_types", "llvm_type"]

_INTRINSICS = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign"}
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _View(NamedTuple):
    pointer: Any
    length: Any


def llvm_type(kind: Scalar | Array) -> Any:
    """Return the type of a number or vector while it is computed with; of an array that of its pointer."""
    if isinstance(kind, Array):
        return ir.PointerType()
    if isinstance(kind, Vector):
        return ir.VectorType(llvm_type(kind.element), kind.length)
    if kind.is_float:
        return ir.FloatType() if kind.bits == 32 else ir.DoubleType()
    return ir.IntType(1 if kind == BOOL else kind.bits)


def _stored_type(kind: Scalar) -> Any:
    """Return the type of a number or vector in memory."""
    if isinstance(kind, Vector):
        return ir.VectorType(_stored_type(kind.element), kind.length)
    return ir.IntType(8) if kind == BOOL else llvm_type(kind)


def _element_of(kind: Scalar) -> Number:
    return kind.element if isinstance(kind, Vector) else kind


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
    """

    def __init__(self, functions: Functions) -> None:
        self.module = ir.Module("sigps")
        self.functions = functions
        self._emitted: dict[Instance, Any] = {}

    def function(self, instance: Instance) -> Any:
        """Return the LLVM function of an instance."""
        if instance not in self._emitted:
            results = argument_types([instance.result or NONE])
            kind = ir.FunctionType(ir.LiteralStructType([*results, _I64]), argument_types(instance.arguments))
            function = ir.Function(self.module, kind, f"sigps.{instance.name}")
            function.linkage = "internal"
            function.attributes.add("alwaysinline")
            function.attributes.add("nounwind")
            self._emitted[instance] = function
            _Emitter(self, function).body(instance)
        return self._emitted[instance]

    def add_entry(self, instance: Instance, cells: Sequence[Cell]) -> None:
        """Add the function that Python calls: it takes the addresses of the cells of arguments, and of the result."""
        pointer = ir.PointerType()
        entry = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), "entry")
        builder = ir.IRBuilder(entry.append_basic_block())
        given: list[Any] = []
        for i, cell in enumerate(cells):
            given += _loaded(builder, builder.gep(entry.args[0], [_I64(i)], source_etype=_I64), cell)
        result = builder.call(self.function(instance), given)
        kinds = [*flat(instance.result or NONE), INT]
        at = 0
        for i, kind in enumerate(kinds):
            value = _widened(builder, builder.extract_value(result, i), kind)
            builder.store(
                value,
                builder.gep(entry.args[1], [_I64(at)], source_etype=_I64),
                align=1 if isinstance(kind, Vector) else None,
            )
            at += kind.length if isinstance(kind, Vector) else 1
        builder.ret_void()


def _loaded(builder: Any, place: Any, cell: Cell) -> list[Any]:
    """Return the parts of an argument, whose cell is at an address."""
    kind = cell.kind
    if isinstance(kind, Vector):
        array = builder.load(place, typ=ir.PointerType())
        at = builder.gep(array, [_I64(DATA_OFFSET)], source_etype=ir.IntType(8))
        value = builder.load(builder.load(at, typ=ir.PointerType()), typ=_stored_type(kind), align=1)
        return [value if value.type == llvm_type(kind) else builder.trunc(value, llvm_type(kind))]
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


def _widened(builder: Any, value: Any, kind: Scalar | Array) -> Any:
    """Return a number, or those of a vector, as cells have them."""
    assert not isinstance(kind, Array)
    element = _element_of(kind)
    wide: Any = ir.DoubleType() if element.is_float else _I64
    if isinstance(kind, Vector):
        wide = ir.VectorType(wide, kind.length)
    if element.is_float:
        return builder.fpext(value, wide) if element.bits == 32 else value
    if element.bits == 64:
        return value
    return builder.sext(value, wide) if element.kind == "i" else builder.zext(value, wide)


class _Emitter:
    """Emits one function; see `Emitter`."""

    emits = leaves_at_once = True

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

    def constant(self, kind: Scalar, value: Any) -> Any:
        if isinstance(kind, Vector):
            return self.splat(self.constant(kind.element, value), kind)
        if kind.is_float:
            return ir.Constant(llvm_type(kind), float(value))
        bits = llvm_type(kind).width
        value = int(value) & (1 << bits) - 1
        if bits > 1 and kind.kind != "u" and value >> bits - 1:
            value -= 1 << bits
        return ir.Constant(llvm_type(kind), value)

    def variable(self, kind: Scalar | Array) -> Any:
        if isinstance(kind, Array):
            return _View(self._slot(ir.PointerType()), self._slot(_I64))
        return self._slot(
            _stored_type(kind) if isinstance(kind, Vector) else llvm_type(kind), llvm_type(kind)
        )

    def _slot(self, stored: Any, kind: Any = None) -> Any:
        builder = ir.IRBuilder(self._entry)
        slot = builder.alloca(stored)
        slot.type = ir.PointerType()
        builder.store(ir.Constant(stored, None), slot)
        slot.sigps_stored, slot.sigps_type = stored, kind or stored
        return slot

    def read(self, variable: Any) -> Any:
        if isinstance(variable, _View):
            return _View(*map(self.read, variable))
        return self._read_as(self._builder.load(variable, typ=variable.sigps_stored), variable.sigps_type)

    def write(self, variable: Any, value: Any) -> None:
        if isinstance(variable, _View):
            for slot, part in zip(variable, value, strict=True):
                self.write(slot, part)
        else:
            self._builder.store(self._stored_as(value, variable.sigps_stored), variable)

    def _read_as(self, value: Any, kind: Any) -> Any:
        """Return what was loaded as it is computed with: a bool has a bit."""
        return value if value.type == kind else self._builder.trunc(value, kind)

    def _stored_as(self, value: Any, kind: Any) -> Any:
        return value if value.type == kind else self._builder.zext(value, kind)

    # Vectors.

    def splat(self, value: Any, kind: Vector) -> Any:
        one = self._builder.insert_element(ir.Constant(llvm_type(kind), ir.Undefined), value, _I32(0))
        return self._builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, kind.length), None))

    def pack(self, values: Sequence[Any], kind: Vector) -> Any:
        made = ir.Constant(llvm_type(kind), ir.Undefined)
        for i, value in enumerate(values):
            made = self._builder.insert_element(made, value, _I32(i))
        return made

    def item(self, vector: Any, kind: Vector, at: Any) -> Any:
        return self._builder.extract_element(vector, at)

    def stretch(self, vector: Any, kind: Vector, begin: int, count: int) -> Any:
        places = ir.Constant(ir.VectorType(_I32, count), [_I32(begin + i) for i in range(count)])
        return self._builder.shuffle_vector(vector, vector, places)

    def _item_place(self, variable: Any, kind: Vector, at: Any) -> Any:
        return self._builder.gep(variable, [at], source_etype=_stored_type(kind.element))

    def read_item(self, variable: Any, kind: Vector, at: Any) -> Any:
        value = self._builder.load(self._item_place(variable, kind, at), typ=_stored_type(kind.element))
        return self._read_as(value, llvm_type(kind.element))

    def write_item(self, variable: Any, kind: Vector, at: Any, value: Any) -> None:
        stored = self._stored_as(value, _stored_type(kind.element))
        self._builder.store(stored, self._item_place(variable, kind, at))

    def some(self, vector: Any, kind: Vector) -> Any:
        name = f"llvm.vector.reduce.or.{_suffix(kind)}"
        return self._builder.call(self._external(name, ir.IntType(1), [llvm_type(kind)]), [vector])

    def _each(self, compute: Callable[..., Any], made_kind: Vector, kind: Vector, *vectors: Any) -> Any:
        """Compute a vector number by number, from vectors of one type; a long one in a loop, which compiles faster."""
        if kind.length <= UNROLLED:
            items = ([self._builder.extract_element(v, _I32(i)) for v in vectors] for i in range(kind.length))
            return self.pack([compute(*item) for item in items], made_kind)
        held, made, counter = (
            [self.variable(kind) for _ in vectors],
            self.variable(made_kind),
            self.variable(INT),
        )
        for slot, vector in zip(held, vectors, strict=True):
            self.write(slot, vector)
        self.write(counter, _I64(0))

        def body() -> None:
            at = self.read(counter)
            self.if_(self.compare(">=", INT, at, _I64(kind.length)), self.break_, lambda: None)
            self.write(counter, self._builder.add(at, _I64(1)))
            self.write_item(made, made_kind, at, compute(*(self.read_item(slot, kind, at) for slot in held)))

        self.loop(body)
        return self.read(made)

    # Operations.

    def cast(self, value: Any, kind: Scalar, to: Scalar) -> Any:
        b, goal = self._builder, llvm_type(to)
        if kind == to:
            return value
        given, wanted = _element_of(kind), _element_of(to)
        if wanted == BOOL:
            return self.compare("!=", kind, value, self.constant(kind, 0))
        if given.is_float and wanted.is_float:
            return b.fptrunc(value, goal) if wanted.bits < given.bits else b.fpext(value, goal)
        if given.is_float:
            name = f"llvm.fpto{'s' if wanted.kind == 'i' else 'u'}i.sat.{_suffix(to)}.{_suffix(kind)}"
            return b.call(self._external(name, goal, [llvm_type(kind)]), [value])
        if wanted.is_float:
            return b.sitofp(value, goal) if given.kind == "i" else b.uitofp(value, goal)
        bits, goal_bits = llvm_type(given).width, llvm_type(wanted).width
        if bits >= goal_bits:
            return value if bits == goal_bits else b.trunc(value, goal)
        return b.sext(value, goal) if given.kind == "i" else b.zext(value, goal)

    def bits(self, value: Any, to: Number) -> Any:
        return self._builder.bitcast(value, llvm_type(to))

    def binary(self, op: str, kind: Scalar, a: Any, b: Any) -> Any:
        builder, element = self._builder, _element_of(kind)
        if element.is_float:
            made = {"+": builder.fadd, "-": builder.fsub, "*": builder.fmul, "/": builder.fdiv}[op]
            return made(a, b, flags=self._flags)
        signed = element.kind == "i"
        made = {
            "+": builder.add, "-": builder.sub, "*": builder.mul, "&": builder.and_, "|": builder.or_,
            "^": builder.xor, "<<": builder.shl, ">>": builder.ashr if signed else builder.lshr,
            "/": builder.sdiv if signed else builder.udiv, "%": builder.srem if signed else builder.urem,
        }[op]  # fmt: skip
        return made(a, b)

    def overflows(self, op: str, kind: Scalar, a: Any, b: Any) -> tuple[Any, Any]:
        if isinstance(kind, Vector):
            return self._overflows_each(op, kind, a, b)
        b_ = self._builder
        made = {"+": b_.sadd_with_overflow, "-": b_.ssub_with_overflow, "*": b_.smul_with_overflow}[op]
        both = made(a, b)
        return b_.extract_value(both, 0), b_.extract_value(both, 1)

    def _overflows_each(self, op: str, kind: Vector, a: Any, b: Any) -> tuple[Any, Any]:
        builder, result = self._builder, self.binary(op, kind, a, b)
        if op == "*":
            bools = Vector(BOOL, kind.length)
            return result, self._each(
                lambda x, y: self.overflows(op, kind.element, x, y)[1], bools, kind, a, b
            )
        # The signs tell: of a sum, it differs from both; of a difference, both differ from a.
        other = builder.xor(b, result) if op == "+" else builder.xor(a, b)
        signs = builder.and_(builder.xor(a, result), other)
        return result, self.compare("<", kind, signs, self.constant(kind, 0))

    def compare(self, op: str, kind: Scalar, a: Any, b: Any) -> Any:
        builder, element = self._builder, _element_of(kind)
        if element.is_float:
            made = builder.fcmp_unordered if op == "!=" else builder.fcmp_ordered
            return made(op, a, b)
        return (builder.icmp_signed if element.kind == "i" else builder.icmp_unsigned)(op, a, b)

    def invert(self, value: Any) -> Any:
        return self._builder.not_(value)

    def select(self, condition: Any, a: Any, b: Any, kind: Scalar) -> Any:
        return self._builder.select(condition, a, b)

    def choose(self, conditions: Any, a: Any, b: Any, kind: Vector) -> Any:
        return self._builder.select(conditions, a, b)

    def math(self, name: str, kind: Scalar, values: Sequence[Any]) -> Any:
        if name == "neg":
            return self._builder.fneg(values[0])
        if name == "fmod":
            return self._builder.frem(*values)
        if isinstance(kind, Vector) and name not in _INTRINSICS:
            return self._each(lambda *items: self.math(name, kind.element, items), kind, kind, *values)
        goal = llvm_type(kind)
        called = (
            f"llvm.{name}.{_suffix(kind)}"
            if name in _INTRINSICS
            else name + "f" * (_element_of(kind).bits == 32)
        )
        return self._builder.call(self._external(called, goal, [goal] * len(values)), values)

    def _external(self, name: str, result: Any, arguments: list[Any]) -> Any:
        known = self._module.module.globals.get(name)
        if known is None:
            known = ir.Function(self._module.module, ir.FunctionType(result, arguments), name)
        return known

    def _element(self, array: Any, kind: Array, at: Any) -> tuple[Any, Any]:
        """Return the address of an element, and its type in memory."""
        stored = _stored_type(kind.element)
        if kind.stride is None:
            if isinstance(kind.element, Vector):
                at = self._builder.mul(at, at.type(kind.element.length))
            one = _stored_type(_element_of(kind.element))
            return self._builder.gep(array.pointer, [at], source_etype=one), stored
        offset = self._builder.mul(at, _I64(kind.stride))
        return self._builder.gep(array.pointer, [offset], source_etype=ir.IntType(8)), stored

    def load(self, array: Any, kind: Array, at: Any) -> Any:
        place, stored = self._element(array, kind, at)
        value = self._builder.load(place, typ=stored, align=_alignment(kind.element))
        return self._read_as(value, llvm_type(kind.element))

    def store(self, array: Any, kind: Array, at: Any, value: Any) -> None:
        place, stored = self._element(array, kind, at)
        self._builder.store(self._stored_as(value, stored), place, align=_alignment(kind.element))

    def size(self, array: Any) -> Any:
        return array.length

    def part(self, array: Any, kind: Array, begin: Any, end: Any) -> Any:
        return _View(self._element(array, kind, begin)[0], self._builder.sub(end, begin))

    def scratch(self, element: Scalar, size: int) -> Any:
        builder = ir.IRBuilder(self._entry)
        number, length = (element.element, element.length) if isinstance(element, Vector) else (element, 1)
        return _View(builder.alloca(llvm_type(number), size=_I64(size * length)), _I64(size))

    def lowest_bit(self, mask: Any) -> Any:
        count = self._external("llvm.cttz.i64", _I64, [_I64, ir.IntType(1)])
        return self._builder.call(count, [mask, ir.IntType(1)(1)])

    def count_bits(self, mask: Any) -> Any:
        return self._builder.call(self._external("llvm.ctpop.i64", _I64, [_I64]), [mask])

    def prefetch(self, array: Any, kind: Array, at: Any) -> None:
        word = ir.IntType(32)
        load = self._external("llvm.prefetch.p0", ir.VoidType(), [ir.PointerType(), word, word, word])
        self._builder.call(load, [self._element(array, kind, at)[0], word(0), word(3), word(1)])

    def exchange(self, array: Any, kind: Array, at: Any, value: Any) -> Any:
        place, stored = self._element(array, kind, at)
        new = self._stored_as(value, stored)
        before = self._builder.atomic_rmw("xchg", place, new, "seq_cst")
        return self._read_as(before, llvm_type(kind.element))

    def call(self, function: Instance, values: Sequence[Any]) -> list[Any]:
        result = self._builder.call(self._module.function(function), _parts(values))
        count = len(self._module.function(function).function_type.return_type.elements)
        parts = iter([self._builder.extract_value(result, i) for i in range(count)])
        kinds = flat(function.result or NONE)
        found = [_View(next(parts), next(parts)) if isinstance(k, Array) else next(parts) for k in kinds]
        return [*found, next(parts)]

    def external(self, name: str, values: Sequence[Any], results: Sequence[Scalar | Array]) -> list[Any]:
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


def _suffix(kind: Scalar) -> str:
    """Return how names of LLVM's functions say a type."""
    element = _element_of(kind)
    text = f"f{element.bits}" if element.is_float else f"i{llvm_type(element).width}"
    return f"v{kind.length}{text}" if isinstance(kind, Vector) else text


def _alignment(kind: Scalar) -> int | None:
    """Return to what vectors in arrays are aligned: as their numbers are."""
    return kind.element.dtype.itemsize if isinstance(kind, Vector) else None
