"""From a vertex program to loops on CPU cores: Numba compiles its functions into the loops of `kernels/cpu`."""

from __future__ import annotations

import functools
import linecache
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sigps.compiler import cache
from sigps.compiler.dispatchers import compiled_names, summable
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.compiler.source import as_written
from sigps.errors import CompileError
from sigps.kernels.cpu import direct_messages, edge_schedule, fused, monotone, priority, pull, push
from sigps.kernels.cpu.arguments import Outbox
from sigps.kernels.cpu.functions import Functions, commit, compute_vertex

__all__ = ["NativeProgram", "compile_for_cpu", "rows"]

Dtypes = tuple[np.dtype[Any], ...]


@dataclass(eq=False)
class NativeProgram:
    """A vertex program compiled for this processor and one graph's column types.

    Attributes:
        slots: Types of the inbox fields (of the message where messages are listed).
        record: Types of the outbox record's fields.
        empty: The inbox of a vertex without messages.
        priority_form: The form for supersteps in which only the best value is sent; None where there is none.
        monotone: The same program with loops that only look for better keys; None where it is no such program.
    """

    program: VertexProgram
    slots: Dtypes
    record: Dtypes
    empty: tuple[Any, ...]
    _functions: Callable[[bool], Functions]
    priority_form: NativeProgram | None = None
    monotone: NativeProgram | None = None
    _loops: dict[tuple[str, bool], CompiledLoop] = field(default_factory=dict)

    def loop(self, name: str, deterministic: bool = False) -> Callable[..., Any]:
        """Return a loop of `kernels/cpu`, compiled at its first call or read from the cache.

        Args:
            name: Which.
            deterministic: Whether floats add up in the order of messages, and vertices' contributions stay apart; a
                program that adds up no floats has one loop for both.
        """
        program = self.program
        deterministic = deterministic and (_adds_floats(program, self.slots) or _aggregates_floats(program))
        known = self._loops.get((name, deterministic))
        if known is None:
            room = next(m for m in _ROOMS if name in m.__all__)
            loop = getattr(room, name)(self._functions(deterministic))
            known = CompiledLoop(loop, f"{program.key} {name} {deterministic}")
            self._loops[name, deterministic] = known
        return known.call

    def outbox(self, size: int) -> Outbox:
        """Return room for what vertices say: who sent, and records.

        Every page is touched. Loops store under a mask, and where such a store meets a page that is not there yet, the
        processor needs a hundred times as long to find that it has nothing to do.
        """
        sent, records = np.zeros(size, dtype=np.uint8), rows(self.record, size)
        for array in (sent, *records):
            array.fill(0)
        return Outbox(sent, records)

    def plain_loop(self, name: str) -> Callable[..., Any]:
        """Return a loop that needs none of the program's functions."""
        if name not in _plain_loops:
            _plain_loops[name] = CompiledLoop(getattr(priority, name), f"plain {name}")
        return _plain_loops[name].call


class CompiledLoop:
    """A loop of `kernels/cpu`, compiled at its first call for the types of that call, or read from the cache.

    Attributes:
        call: Calls it; of each argument the class is the same in all calls.
    """

    def __init__(self, loop: Callable[..., Any], key: str) -> None:
        self._loop = _jit(loop)
        self._loop._cache = cache.KernelCache(key)
        self.call: Callable[..., Any] = self._call_first

    def _call_first(self, *arguments: Any) -> Any:
        self.call = _open(self._loop, [type(a) if hasattr(a, "_fields") else None for a in arguments])
        return self.call(*arguments)


def _open(loop: Any, classes: Sequence[type | None]) -> Callable[..., Any]:
    """Return a function that calls a loop with tuples in the place of NamedTuples of these classes.

    Numba finds the type of a NamedTuple in 0.8 us and of a tuple in 0.2, at every call. So the loop is compiled for
    NamedTuples and called with tuples, which compiled code takes apart in the same way. What is in a NamedTuple is
    passed as it is.
    """
    from numba.core.types.containers import BaseTuple

    compile_plain = type(loop).compile

    def compile_named(given: tuple[Any, ...]) -> Any:
        named = tuple(
            kind if cls is None else BaseTuple.from_types(kind.types, cls)
            for kind, cls in zip(given, classes, strict=True)
        )
        entry = compile_plain(loop, named)
        loop._insert([kind._code for kind in given], entry, False)
        return entry

    loop.compile = compile_named
    taken = [f"a{i}" for i in range(len(classes))]
    passed = [name if cls is None else f"{name} + ()" for name, cls in zip(taken, classes, strict=True)]
    names: dict[str, Any] = {"loop": loop}
    exec(f"def call({', '.join(taken)}):\n    return loop({', '.join(passed)})", names)
    call: Callable[..., Any] = names["call"]
    return call


_ROOMS = (pull, push, direct_messages, monotone, edge_schedule, fused)
_plain_loops: dict[str, CompiledLoop] = {}


def compile_for_cpu(program: VertexProgram, columns: Mapping[str, np.dtype[Any]]) -> NativeProgram:
    """Compile a program; what was compiled before comes from the cache on disk.

    Args:
        program: The vertex program.
        columns: The types of the graph's edge columns.

    Raises:
        CompileError: If the types in compute() do not fit together; with file, line and source text.
    """
    used = tuple(columns.get(c, np.dtype(np.float64)) for c in program.edge_columns)
    read = tuple(columns.get(c, np.dtype(np.float64)) for c in program.read_columns)
    return _compile(program, used, read)


@functools.lru_cache(maxsize=256)
def _compile(program: VertexProgram, used: Dtypes, read: Dtypes) -> NativeProgram:
    key = f"types {program.key} {used} {read}"
    names = compiled_names(program, _jit, __name__)
    kept = cache.read(key)
    if kept is None:
        slots, record = _infer(program, names, used, read)
        cache.write(key, pickle.dumps((slots, record)))
    else:
        slots, record = kept
    empty = tuple(d.type(_empty(op)) for d, op in zip(slots, _ops(program), strict=True))

    def native(form: VertexProgram, names: dict[str, Any], **forms: Any) -> NativeProgram:
        functions = functools.partial(_functions, form, names, slots, record)
        return NativeProgram(form, slots, record, empty, functions, **forms)

    best, plain = program.priority_form, replace(program, monotone=None)
    only_better = replace(program, key=f"{program.key} monotone")
    return native(
        plain,
        names,
        priority_form=native(best, compiled_names(best, _jit, __name__)) if best else None,
        monotone=native(only_better, names) if _keeps_keys(program, slots, record) else None,
    )


def _keeps_keys(program: VertexProgram, slots: Dtypes, record: Dtypes) -> bool:
    """Tell whether a monotone program's keys stay as they are from record to slot to state."""
    claim = program.monotone
    if claim is None or slots[0] != program.state_dtypes[claim.current]:
        return False
    said = record[claim.record]
    return said == slots[0] or said.kind == slots[0].kind == "f"


def _ops(program: VertexProgram) -> list[str]:
    if program.consumption is Consumption.LISTED:
        return ["sum"] * len(program.message)
    return [slot.op for slot in program.slots for _ in slot.names]


def _empty(op: str) -> Any:
    return 1 if op == "all" else 0


def _jit(function: Callable[..., Any], fastmath: bool | set[str] = False) -> Any:
    import numba

    return numba.njit(nogil=True, error_model="numpy", _nrt=False, fastmath=fastmath)(function)


def _infer(
    program: VertexProgram, names: dict[str, Any], used: Dtypes, read: Dtypes
) -> tuple[Dtypes, Dtypes]:
    """Find the types of the slots and of the outbox record by compiling lift() and compute()."""
    import numba

    def of(dtypes: Dtypes) -> Any:
        return numba.types.Tuple([numba.from_dtype(d) for d in dtypes])

    def array(dtype: np.dtype[Any]) -> Any:
        return numba.types.Array(numba.from_dtype(dtype), 1, "C")

    i64 = numba.types.int64
    env = numba.types.UniTuple(i64, 3)
    params = of(tuple(f.dtype(program.precision) for f in program.params))  # type: ignore[arg-type]
    slots = program.message_dtypes
    inbox: Any = numba.types.Tuple([i64, i64, *[array(d) for d in slots]])
    if program.consumption is not Consumption.LISTED:
        lifted = _returned(program, names["lift"], (env, params, of(program.message_dtypes)))
        slots = tuple(summable(d, op) for d, op in zip(lifted, _ops(program), strict=True))
        inbox = of(slots)
    edges: Any = numba.types.Tuple([])
    if program.reads_edges:
        columns = numba.types.Tuple([array(d) for d in read])
        u64 = numba.types.uint64  # or compute() would test at every edge whether its position is negative
        parts = [u64, u64, array(np.dtype(np.uint32)), array(np.dtype(np.int64)), columns]
        if program.reads_edge_links:
            kept = numba.types.Tuple([array(d) for d in program.edge_state_dtypes])
            rows_of = [array(np.dtype(t)) for t in (np.uint32, np.uint64, np.uint32, np.uint32, np.int64)]
            parts.append(numba.types.Tuple([*rows_of, kept, kept]))
        edges = numba.types.Tuple(parts)
    mail: Any = numba.types.Tuple([])
    if program.delivery is Delivery.DIRECT:
        dtypes = [np.dtype(t) for t in (np.int64, np.uint8, np.int64, np.uint32)] + [*program.message_dtypes]
        mail = numba.types.Tuple([array(d) for d in dtypes])
    given = (
        env,
        params,
        of(program.aggregate_dtypes),
        env,
        of(program.state_dtypes),
        inbox,
        numba.types.boolean,
    )
    outcome = _signature(program, names["compute"], (*given, edges, mail))
    record = tuple(_dtype(t) for t in outcome[2])
    if program.precision == "single":
        record = tuple(np.dtype(np.float32) if d == np.float64 else d for d in record)
    return slots, record


def _returned(program: VertexProgram, function: Any, given: tuple[Any, ...]) -> Dtypes:
    return tuple(_dtype(t) for t in _signature(program, function, given))


def _signature(program: VertexProgram, function: Any, given: tuple[Any, ...]) -> Any:
    from numba.core.errors import NumbaError

    try:
        function.compile(given)
    except NumbaError as error:
        raise _explained(program, error) from None
    return function.overloads[given].signature.return_type


def _dtype(numba_type: Any) -> np.dtype[Any]:
    from numba.np.numpy_support import as_dtype

    return np.dtype(as_dtype(getattr(numba_type, "literal_type", numba_type)))


def _explained(program: VertexProgram, error: Any) -> CompileError:
    """Turn Numba's report into file, line and the first thing that it complains of."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    places = [(file, int(line)) for file, line in re.findall(r'File "([^"]*)", line (\d+)', text)]
    places += [(file, int(line)) for file, line in re.findall(r"defined at (\S+) \((\d+)\)", text)]
    line = next((n for file, n in reversed(places) if _is_same_file(file, program.file)), program.line)
    noise = (
        "Failed",
        "During",
        "-",
        "File",
        "^",
        "[1",
        "[2",
        "Overload",
        "There are",
        "Rejected",
        "This error",
        "For more",
    )
    parts = [part.strip() for part in text.splitlines() if part.strip()]
    complaint = next(
        (p for p in parts if not p.startswith(noise) and "pipeline" not in p), "types do not fit"
    )
    if complaint.endswith(":"):
        complaint += " " + "".join(parts[parts.index(complaint) + 1 : parts.index(complaint) + 3]).lstrip(
            "> "
        )
    complaint = re.sub(r"\b__[sapc]_(?=\w)", "self.", as_written(complaint))
    return CompileError(
        f"{program.name}: this cannot be compiled: {complaint.rstrip('.')}. "
        "A variable keeps one type; use numbers, tuples, math and NumPy scalar functions",
        file=program.file,
        line=line,
        source=linecache.getline(program.file, line).strip(),
    )


def _is_same_file(shown: str, file: str) -> bool:
    """Tell whether a file is meant; Numba shows long paths from the current folder."""
    return file == shown or Path(file) == Path.cwd() / shown or file.endswith(shown.lstrip("./"))


def _functions(
    program: VertexProgram, names: dict[str, Any], slots: Dtypes, record: Dtypes, deterministic: bool
) -> Functions:
    lists = program.consumption is Consumption.LISTED
    aggregators = _access(len(program.aggregators))
    load_states, store_states = _access(len(program.states))
    load_record, store_record = _row_access(len(record))
    load_slots, store_slots = _row_access(len(slots))
    load_message, store_message = _access(len(program.message))
    keeps_apart = deterministic and _aggregates_floats(program)
    functions = Functions(
        compute=names["compute"],
        deliver=_deliver(names, lists, program.needs_end_ids),
        lift=names.get("lift"),  # type: ignore[arg-type]
        merge=_merge(program, names, slots, deterministic),
        contribute=_contribute(names["fold"], aggregators[1], keeps_apart),
        edges_of=_edges_of(program.reads_edges, program.reads_edge_links),
        load_states=load_states,
        store_states=store_states,
        load_record=load_record,
        store_record=store_record,
        load_columns=_access(len(program.edge_columns))[0],
        load_slots=load_slots,
        store_slots=store_slots,
        load_message=load_message,
        store_message=store_message,
        as_list=_as_list(len(program.message)),
        load_inbox=_load_lists(_as_list(len(program.message))) if lists else _load_inbox(load_slots),
        conclude=_conclude(names["fold"], tuple(a.persistent for a in program.aggregators)),
        is_push_cheaper=_is_push_cheaper(),
        prefetch=_prefetch(),
        stops_early=program.early_exit in (EarlyExit.FIRST, EarlyExit.LOWEST),
        may_retire=program.monotone is None,
        **_comparisons(program),
    )
    functions = functions._replace(
        compute_vertex=_jit(compute_vertex(functions)), commit=_jit(commit(functions))
    )
    return functions._replace(
        scatter_direct=_jit(push.scatter_direct(functions)),
        compute_listed=_jit(push.compute_listed(functions)),
    )


@functools.cache
def _access(width: int) -> tuple[Any, Any]:
    """Return the load and store of one element of `width` arrays; Numba indexes tuples only by constants."""
    parts = ", ".join(f"arrays[{i}][at]" for i in range(width))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def load(arrays, at):\n    return ({parts}{',' if width else ''})", names)
    lines = "\n".join(f"    arrays[{i}][at] = values[{i}]" for i in range(width)) or "    pass"
    exec(f"def store(arrays, at, values):\n{lines}", names)
    return _jit(names["load"]), _jit(names["store"])


@functools.cache
def _row_access(width: int) -> tuple[Any, Any]:
    """Return the load and store of one row of `rows`: fields side by side, one cache line a visit."""
    if width < 2:
        return _access(width)
    parts = ", ".join(f"row.f{i}" for i in range(width))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def load(arrays, at):\n    row = arrays[0][at]\n    return ({parts})", names)
    lines = "\n".join(f"    row.f{i} = values[{i}]" for i in range(width))
    exec(f"def store(arrays, at, values):\n    row = arrays[0][at]\n{lines}", names)
    return _jit(names["load"]), _jit(names["store"])


def rows(dtypes: Dtypes, size: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Return zeroed room for `size` tuples of these types: no array, one array, or one of structures."""
    if len(dtypes) < 2:
        return tuple(np.zeros(size, dtype=d) for d in dtypes)
    fields = [(f"f{i}", d) for i, d in enumerate(dtypes)]
    return (np.zeros(size, dtype=np.dtype(fields, align=True)),)


def _adds_floats(program: VertexProgram, slots: Dtypes) -> bool:
    if program.consumption is Consumption.LISTED:
        return False
    return any(d.kind == "f" and op == "sum" for d, op in zip(slots, _ops(program), strict=True))


def _aggregates_floats(program: VertexProgram) -> bool:
    return any(d.kind == "f" for d in program.aggregate_dtypes)


def _merge(program: VertexProgram, names: dict[str, Any], slots: Dtypes, deterministic: bool) -> Any:
    """Return the combiner; sums in any order, several at once, where the order of messages is left open."""
    merge: Any = names.get("merge")
    is_ordered = deterministic or not _adds_floats(program, slots)
    if merge is None or is_ordered or any(op not in ("sum", "any", "all") for op in _ops(program)):
        return merge
    return _jit(merge.py_func, fastmath={"reassoc"})


def _deliver(names: dict[str, Any], lists: bool, needs_end_ids: bool) -> Any:
    edge: Any = names.get("edge")
    lift: Any = names.get("lift")

    def deliver(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        params = arguments.params
        num_vertices, num_edges = arguments.num_vertices, arguments.num_edges
        source = np.int64(ids[s]) if needs_end_ids and len(ids) > 0 else np.int64(s)
        target = np.int64(ids[v]) if needs_end_ids and len(ids) > 0 else np.int64(v)
        sent_in = (arguments.superstep - 1, num_vertices, num_edges)
        passes, message = edge(sent_in, params, record, source, target, columns)
        return passes, lift((arguments.superstep, num_vertices, num_edges), params, message)

    def deliver_whole(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        source = np.int64(ids[s]) if needs_end_ids and len(ids) > 0 else np.int64(s)
        target = np.int64(ids[v]) if needs_end_ids and len(ids) > 0 else np.int64(v)
        sent_in = (arguments.superstep - 1, arguments.num_vertices, arguments.num_edges)
        return edge(sent_in, arguments.params, record, source, target, columns)

    def deliver_nothing(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        return False, ()

    if edge is None:
        return _jit(deliver_nothing)
    return _jit(deliver_whole if lists else deliver)


def _comparisons(program: VertexProgram) -> dict[str, Any]:
    """Return how a monotone program's loops compare keys; for other programs every message matters."""
    claim = program.monotone
    if claim is None:
        return {"matters": _jit(_always)}
    at, takes_min = claim.current, program.slots[0].op == "min"

    def current(states, v):  # type: ignore[no-untyped-def]
        return states[at][v]

    def is_better(key, other):  # type: ignore[no-untyped-def]
        return key < other if takes_min else key > other

    better = _jit(is_better)

    def matters(states, v, value):  # type: ignore[no-untyped-def]
        return better(value[0], states[at][v])

    return {
        "current": _jit(current),
        "is_better": better,
        "matters": _jit(matters),
        "key_field": claim.record,
        "key_column": claim.column,
    }


def _always(states, v, value):  # type: ignore[no-untyped-def]
    return True


def _contribute(fold: Any, store: Any, keeps_apart: bool) -> Any:
    def contribute(contributions, v, total, contribution):  # type: ignore[no-untyped-def]
        return fold(total, contribution)

    def contribute_apart(contributions, v, total, contribution):  # type: ignore[no-untyped-def]
        store(contributions, v, contribution)
        return fold(total, contribution)

    return _jit(contribute_apart if keeps_apart else contribute)


def _conclude(fold: Any, persistent: tuple[bool, ...]) -> Any:
    def conclude(values, total, identity):  # type: ignore[no-untyped-def]
        return total

    def conclude_kept(values, total, identity):  # type: ignore[no-untyped-def]
        return fold(begin(values, identity), total)

    if not any(persistent):
        return _jit(conclude)
    parts = ", ".join(f"{'values' if keeps else 'identity'}[{i}]" for i, keeps in enumerate(persistent))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def begin(values, identity):\n    return ({parts},)", names)
    begin = _jit(names["begin"])
    return _jit(conclude_kept)


@functools.cache
def _prefetch() -> Any:
    """Return a function that asks for the cache line of an array's element, and does not wait for it."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typingctx, array, at):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
            view = context.make_array(signature.args[0])(context, builder, given[0])
            address = builder.bitcast(builder.gep(view.data, [given[1]]), cgutils.voidptr_t)
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(ask, [address, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.none(array, at), generate

    return prefetch


@functools.cache
def _is_push_cheaper() -> Any:
    return _jit(fused.is_push_cheaper)


def _edges_of(reads_edges: bool, has_links: bool) -> Any:
    def edges_of(out_edges, v):  # type: ignore[no-untyped-def]
        offsets, gids, ids, columns = out_edges
        return offsets[v], offsets[v + np.uint64(1)], gids, ids, columns

    def linked_edges(out_edges, v):  # type: ignore[no-untyped-def]
        offsets, gids, ids, columns, links = out_edges
        return offsets[v], offsets[v + np.uint64(1)], gids, ids, columns, links

    def no_edges(out_edges, v):  # type: ignore[no-untyped-def]
        return ()

    if not reads_edges:
        return _jit(no_edges)
    return _jit(linked_edges if has_links else edges_of)


def _load_inbox(load_slots: Any) -> Any:
    def load_inbox(v, inbox, empty):  # type: ignore[no-untyped-def]
        if inbox.state[v] != 0:
            return True, load_slots(inbox.slots, v)
        return False, empty

    return _jit(load_inbox)


def _load_lists(as_list: Any) -> Any:
    def load_lists(v, inbox, empty):  # type: ignore[no-untyped-def]
        first, last = inbox.offsets[v], inbox.offsets[v + 1]
        return last > first, as_list(first, last, inbox.messages)

    return _jit(load_lists)


@functools.cache
def _as_list(width: int) -> Any:
    parts = "".join(f", arrays[{i}]" for i in range(width))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def as_list(first, last, arrays):\n    return (first, last{parts})", names)
    return _jit(names["as_list"])
