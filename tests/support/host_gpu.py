"""A GPU's host code without a GPU: CuPy's arrays are this process's memory, and kernels are Python.

What the engine for GPUs does between launches runs as it is: layouts, blocks of memory, exchanges, state logs. A
lease is run by the plain schedule of `cuda_twin.py`, on the structures that the kernels would get. An array of the
device and one of the host do not mix, as CuPy's do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_twin import IDLE, Memory, OnHost, layout_of
from host_kernels import host_kernels
from host_master import MasterOnHost
from plain_pages import read_numbers, read_rows

from sigps.compiler.cuda.adapters import num_cells
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.device import cuda, nccl, transfers
from sigps.device.cuda import Gpu
from sigps.engine.gpu import (
    choice,
    crossing_values,
    direct_messages,
    open_loops,
    packed_edges,
    placed_edges,
    spilled_edges,
    whole_halo,
)
from sigps.engine.gpu import engine as gpu_engine
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.launch import MEDIUM, NO_CLUSTER
from sigps.engine.gpu.layout import lay_out
from sigps.engine.gpu.placement import Placement
from sigps.engine.gpu.variant import LeaseForm, Variant
from sigps.group import Group
from sigps.kernels.cpu.arguments import ACTIVE, RETIRED
from sigps.kernels.cuda.abi import OVERFLOW, structure
from sigps.kernels.cuda.lease import (
    CONTROL,
    FAULTED,
    FINISHED,
    FRONTIER_BITS,
    NO_CAPACITY,
    NO_LOAD,
    NO_VERTEX,
    OVERFLOWED,
    RUNNING,
    STATS,
    WHOLE,
)
from sigps.system import transport

__all__ = ["use_host_as_gpu"]

GPU = Gpu(0, "this process", "sm_90", num_sms=1, shared_bytes=1 << 16)
FREE_BYTES = 1 << 34


def use_host_as_gpu(monkeypatch: pytest.MonkeyPatch, *, has_nccl: bool = False) -> None:
    """Let `device="cuda"` be this process, for ranks that are threads.

    Args:
        monkeypatch: Takes it back.
        has_nccl: Whether arrays cross from device to device.
    """
    monkeypatch.setitem(sys.modules, "cupy", _cupy())
    monkeypatch.setattr(cuda, "_limit", None)  # and taken back
    monkeypatch.setattr(cuda, "what_is_missing", lambda: "")
    monkeypatch.setattr(cuda, "find_gpu", lambda ordinal=0: GPU)
    monkeypatch.setattr(choice, "reachable", lambda gpu: ())
    monkeypatch.setattr(nccl, "why_not", lambda: "there is no GPU")
    if has_nccl:
        monkeypatch.setattr(transport, "reason_against_nccl", lambda ranks: "")
        monkeypatch.setattr(nccl, "connect", _Nccl)
    monkeypatch.setattr(gpu_variant, "load_variant", _load_variant)
    monkeypatch.setattr(Placement, "_link_ahead", lambda *given: None)
    no_kernel = SimpleNamespace(launch=lambda *given: None)  # nobody reads heads here
    no_heads = SimpleNamespace(launch=lambda blocks, threads, given: _pass_over_pages(given[0]))
    monkeypatch.setattr(
        packed_edges, "_heads_kernel", lambda gpu, is_part, is_fed: no_heads if is_fed else no_kernel
    )
    monkeypatch.setattr(gpu_engine, "packed_path_lengths", lambda *given, **_: None)  # kernels of their own
    monkeypatch.setattr(open_loops, "word_reader", lambda gpu, address: lambda: 0)
    monkeypatch.setattr(transfers, "_fill_words", _fill_words)
    for module in (spilled_edges, direct_messages):
        monkeypatch.setattr(module, "Spilled", _Spilled)
    for module in (gpu_graph, placed_edges, spilled_edges, whole_halo):
        monkeypatch.setattr(module, "layout_kernel", lambda name, gpu, file="layout": _LayoutKernel(name))
    monkeypatch.setattr(
        crossing_values, "layout_kernel", lambda name, gpu, file: host_kernels(file, {}, meet=True)[name]
    )
    monkeypatch.setattr(gpu_graph, "lay_out", lambda degrees, **_: lay_out(degrees, in_slices=False))


# --- arrays ----------------------------------------------------------------


def _check(*values: Any) -> None:
    for value in values:
        if isinstance(value, (tuple, list)):
            _check(*value)
        elif type(value) is np.ndarray:
            raise TypeError("an array of the host where one of the device belongs")


class _Device(contextlib.nullcontext[None]):
    id = 0


class Array(np.ndarray[Any, Any]):
    """An array of the device."""

    device = _Device()

    def __new__(cls, shape: Any, dtype: Any = float, memptr: Any = None) -> Array:
        if memptr is None:
            return np.ndarray.__new__(cls, shape, dtype)
        return np.ndarray.__new__(cls, shape, dtype, memptr.memory, memptr.offset)

    @property
    def data(self) -> Any:  # type: ignore[override]
        def memset_async(value: int, size: int) -> None:
            ctypes.memset(self.ctypes.data, value, size)

        return SimpleNamespace(ptr=self.ctypes.data, memset_async=memset_async)

    def set(self, values: Any) -> None:
        assert type(values) is np.ndarray
        super().__setitem__(slice(None), values)

    def get(self) -> Any:
        return np.array(_plain(self))

    def __getitem__(self, index: Any) -> Any:
        _check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(index, value)
        super().__setitem__(index, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        _check(*inputs, *(out or ()))
        plain = [_plain(value) for value in inputs]
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        found = getattr(ufunc, method)(*plain, **options)
        return out[0] if out is not None else _on_device(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _check(*args, *kwargs.values())
        return super().__array_function__(function, types, args, kwargs)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Array) else value


def _on_device(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(map(_on_device, found))
    return found.view(Array) if isinstance(found, np.ndarray) else found


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        known = getattr(np, name)
        if isinstance(known, type) or not callable(known):
            return known

        def call(*args: Any, **options: Any) -> Any:
            if name not in ("asarray", "array", "ascontiguousarray"):
                _check(*args)
            return _on_device(known(*args, **options))

        return call


def _cupy() -> Any:
    module: Any = _Module("cupy")
    module.ndarray = Array
    module.asarray = lambda values, dtype=None: (
        values if isinstance(values, Array) and dtype is None else np.array(values, dtype).view(Array)
    )
    module.asnumpy = lambda values, stream=None: np.array(_plain(values))
    pool = SimpleNamespace(
        free_bytes=lambda: 0,
        total_bytes=lambda: 0,
        used_bytes=lambda: 0,
        free_all_blocks=lambda: None,
        set_limit=lambda size: None,
    )
    module.get_default_memory_pool = lambda: pool
    stream = _Stream(non_blocking=False)
    module.cuda = SimpleNamespace(
        runtime=SimpleNamespace(
            memGetInfo=lambda: (FREE_BYTES, FREE_BYTES),
            getDevice=lambda: 0,
            deviceSynchronize=lambda: None,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            memcpyDeviceToDevice=3,
            memcpyAsync=lambda target, source, size, kind, stream: ctypes.memmove(target, source, size),
            hostRegister=lambda address, size, flags: None,
            hostUnregister=lambda address: None,
            CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
        ),
        alloc=lambda size: Pointer(np.empty(size, np.uint8)),
        alloc_pinned_memory=_Pinned,
        PinnedMemory=_Pinned,
        PinnedMemoryPointer=lambda memory, offset: memory,
        UnownedMemory=_unowned,
        MemoryPointer=Pointer,
        memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {})),
        get_current_stream=lambda: stream,
        Stream=_Stream,
        Device=lambda ordinal: contextlib.nullcontext(),
        Event=lambda disable_timing: SimpleNamespace(record=lambda: None),
    )
    return module


class Pointer(NamedTuple):
    """An address of the device, within memory that it holds."""

    memory: Any
    offset: int = 0

    @property
    def ptr(self) -> int:
        return int(self.memory.ctypes.data) + self.offset

    def __add__(self, num_bytes: int) -> Pointer:  # type: ignore[override]
        return Pointer(self.memory, self.offset + num_bytes)


class _Stream:
    """A stream of which all that is asked has happened."""

    null: _Stream
    ptr = 0

    def __init__(self, non_blocking: bool) -> None:
        pass

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass


_Stream.null = _Stream(non_blocking=False)


class _Pinned(bytearray):
    """Pinned memory: bytes, and where they are."""

    @property
    def ptr(self) -> int:
        return ctypes.addressof((ctypes.c_char * len(self)).from_buffer(self))


def _unowned(address: int, size: int, owner: Any, device: int) -> Any:
    """Return memory that an owner keeps."""
    raw = (ctypes.c_char * size).from_address(address)
    raw.owner = owner  # type: ignore[attr-defined]
    return np.frombuffer(raw, np.uint8)


class _Nccl:
    """Arrays from device to device, among ranks that are threads."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def all_to_all(self, parts: Any) -> list[Any]:
        assert all(isinstance(part, Array) for part in parts)
        return [part.view(Array) for part in self._group.all_to_all([_plain(part) for part in parts])]

    def move(self, parts: Any, arrived: Any) -> None:
        for target, part in zip(arrived, self.all_to_all([part.copy() for part in parts]), strict=True):
            assert target.nbytes == part.nbytes
            _plain(target)[:] = _plain(part)


def _at(address: Any, dtype: Any, count: int) -> Any:
    """Return what lies at an address."""
    size = np.dtype(dtype).itemsize * count
    if size == 0 or int(address) == 0:
        return np.zeros(count, dtype)
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype)


def _fill_words(address: int, word: int, count: int) -> None:
    ctypes.memmove(address, word.to_bytes(4, sys.byteorder) * count, 4 * count)


class _Spilled:
    """Memory whose parts are one array anyway."""

    def __init__(self, num_bytes: int, on_device: int) -> None:
        self.on_device, self.on_host = on_device, num_bytes - on_device
        self.bytes = np.zeros(num_bytes, np.uint8).view(Array)

    def write(self, at: int, values: Any) -> None:
        _plain(self.bytes)[at : at + values.nbytes] = _plain(values).view(np.uint8)


# --- kernels ---------------------------------------------------------------


class _LayoutKernel:
    """`layout.cu`, of rows that lie in one piece each."""

    def __init__(self, name: str) -> None:
        self._name = name

    def launch(self, blocks: int, threads: int, parameters: Any) -> None:
        if self._name.startswith("take_rows"):
            values, order, num_rows, length, taken = parameters
            rows = _plain(values).reshape(-1, int(length))
            _plain(taken).reshape(-1, int(length))[:] = rows[_plain(order)[: int(num_rows)]]
            return
        if self._name.startswith("take_ids"):
            values, order, num_rows, length, taken, is_none = parameters
            rows = _plain(values).reshape(-1, int(length))
            rows = rows[_plain(order) if isinstance(order, Array) else slice(None)][: int(num_rows)]
            least = rows == np.iinfo(rows.dtype).min
            wide = np.where(least, np.iinfo(np.int64).min, rows.astype(np.int64))
            _plain(taken).reshape(-1, int(length))[:] = wide
            if isinstance(is_none, Array):
                _plain(is_none).reshape(-1, int(length))[:] = least
            return
        if self._name.startswith("put_rows"):
            values, order, num_rows, length, target = parameters
            rows = _plain(values).reshape(-1, int(length))
            _plain(target).reshape(-1, int(length))[_plain(order)[: int(num_rows)]] = rows[: int(num_rows)]
            return
        if self._name == "begin_run_thread_mapped":
            _begin_run(*parameters)
            return
        if self._name in _HALO_MOVED_BY:
            _move_halo(self._name, parameters)
            return
        if self._name in _ROWS_MOVED_BY or self._name.startswith("move_rows"):
            _move_rows(self._name, parameters)
            return
        if self._name.startswith("make_piece_keys"):
            before, num_rows, places, ends, keys = parameters
            rows = np.repeat(np.arange(int(num_rows)), np.diff(_plain(before).astype(int)))
            _plain(keys)[:] = (rows << 32) | _plain(places)[_plain(ends)]
            return
        if self._name.startswith("place_piece"):
            _place_piece(*parameters)
            return
        edges, *arrays, placed = parameters
        begins = _at(edges["offsets"], np.uint64, int(edges["num_rows"]) + 1)
        if self._name.startswith("place_sorted"):
            before, order, *column = map(_plain, arrays)
            first = int(begins[0]) if isinstance(placed, np.uint64) else 0
            np.testing.assert_array_equal(
                before + np.uint64(first), begins[: before.size]
            )  # rows in one piece lie as they are sorted
            if isinstance(placed, np.uint64):  # where position 0 would be
                dtype = column[0].dtype if column else np.dtype(np.uint32)
                placed = _at(int(placed) + first * dtype.itemsize, dtype, order.size)
            raw = _plain(placed)[: order.size]
            raw[:] = column[0].view(raw.dtype)[order] if column else (order & 0xFFFFFFFF).astype(np.uint32)
            return
        places, before, values = arrays
        places, before = _plain(places).astype(int), _plain(before).astype(int)
        values, placed = _plain(values), _plain(placed)
        for lid in range(int(edges["num_rows"])):
            first, end = before[lid], before[lid + 1]
            at = int(begins[places[lid]])
            if self._name.startswith("make_keys"):
                placed[first:end] = (places[lid] << 32) | places[values[first:end]]
                continue
            ends = values[first:end]
            if self._name.startswith("place_ends"):
                ends = places[ends]
            raw = placed[at : at + end - first]
            raw[:] = ends.view(raw.dtype) if ends.dtype.itemsize == raw.dtype.itemsize else ends


def _place_piece(
    edges: Any, lids: Any, offsets: Any, num_rows: Any, order: Any, *column_and_placed: Any
) -> None:
    """Rows of the host, sorted one after another, to where their local ids have them."""
    begins = _at(edges["offsets"], np.uint64, int(edges["num_rows"]) + 1).astype(int)
    *column, placed = map(_plain, column_and_placed)
    before, order = _plain(offsets).astype(int), _plain(order)
    values = column[0].view(placed.dtype)[order] if column else (order & 0xFFFFFFFF).astype(placed.dtype)
    for row, lid in enumerate(_plain(lids)[: int(num_rows)].astype(int)):
        placed[begins[lid] : begins[lid + 1]] = values[before[row] : before[row + 1]]


_HALO_MOVED_BY = (
    "pack_halo_thread_mapped",
    "unpack_halo_thread_mapped",
    "add_sent_edges_thread_mapped",
    "count_status_thread_mapped",
)


def _move_halo(name: str, parameters: Any) -> None:
    """What `staged_halo.cu` does, vertex by vertex."""
    *given, last = (_plain(p) for p in parameters)
    if name == "count_status_thread_mapped":
        last[0] += (given[0][: int(given[1])] == given[2]).sum()
    elif name == "add_sent_edges_thread_mapped":
        has_sent = np.unpackbits(given[0].view(np.uint8), bitorder="little")[: int(given[1])].astype(bool)
        last[0] += given[2][: int(given[1])][has_sent].sum(dtype=np.uint64)
    else:
        lids, count, size, *arrays = (*given, last)
        from_bits, from_records, to_bits, to_records = arrays
        for i, lid in enumerate(lids[: int(count)].tolist()):
            at, to = (lid, i) if name.startswith("pack") else (i, lid)
            is_set = _words(from_bits)[at // 32] >> np.uint32(at % 32) & 1
            bit = np.uint32(1 << to % 32)
            if is_set:
                _words(to_bits)[to // 32] |= bit
                to_records[to * size : (to + 1) * size] = from_records[at * size : (at + 1) * size]
            elif name.startswith("pack"):
                _words(to_bits)[to // 32] &= ~bit


def _begin_run(words: Any) -> None:
    """What `begin_run_thread_mapped` writes."""
    beginning = words.view(structure("Beginning").dtype)[0]
    for fill in beginning["fills"][: int(beginning["num_fills"])]:
        first, period, count = int(fill["first"]), int(fill["period"]), int(fill["count"])
        pattern = beginning["words"][first : first + period]
        _at(fill["target"], np.uint64, count)[:] = np.resize(pattern, count)


def _words(bits: Any) -> Any:
    return bits.view(np.uint32)


_ROWS_MOVED_BY = ("widen_thread_mapped", "find_reverse_warp_mapped")


def _move_rows(name: str, parameters: Any) -> None:
    """What `row_moves.KernelMoves` launches, row by row."""
    if name == "widen_thread_mapped":
        values, count, wide = parameters
        _plain(wide)[:] = _plain(values)[: int(count)]
        return
    if name == "find_reverse_warp_mapped":
        offsets, targets, rows, gids = map(_plain, parameters[:4])
        found, missing = map(_plain, parameters[5:])
        for v, gid in enumerate(gids.tolist()):
            for edge in range(int(offsets[v]), int(offsets[v + 1])):
                row = int(rows[edge])
                theirs = targets[int(offsets[row]) : int(offsets[row + 1])].tolist()
                missing[0] += gid not in theirs
                found[edge] = int(offsets[row]) + (theirs.index(gid) if gid in theirs else 0)
        return
    before, after, order, _, length, backwards, values, moved = parameters
    before, after, order, values, moved = map(_plain, (before, after, order, values, moved))
    assert int(length) == values[:1].size
    for row, earlier in enumerate(order.tolist()):
        begin, end = int(after[row]), int(after[row + 1])
        first = int(before[earlier])
        old, new = slice(first, first + end - begin), slice(begin, end)
        if backwards:
            moved[old] = values[new]
        else:
            moved[new] = values[old]


def _load_variant(program: VertexProgram, columns: Any, narrow: bool, gpu: Gpu, form: LeaseForm) -> Variant:
    assert not form.has_peers
    assert not form.goes_by_edge
    assert not form.has_tiles
    compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=gpu.arch)
    kernel: Any = _LeaseKernel(program, dict(columns), narrow)
    return Variant(compiled, kernel, MEDIUM, None, NO_CLUSTER, 1, 0)


class _LeaseKernel:
    """`lease.cu`: pulls, lists and direct messages, one vertex after another."""

    def __init__(self, program: VertexProgram, columns: dict[str, Any], narrow: bool) -> None:
        self._program, self._columns = program, columns
        self._columns_in_order: list[Any] = []
        self._walked: dict[Any, Any] = {}
        self._layout = layout_of(program, columns, narrow)
        self._functions = OnHost(program, self._layout)
        self._master = MasterOnHost(program, self._layout) if program.master is not None else None
        self._begun: dict[int, Any] = {}  # supersteps that ran out of room, by where their control lies

    def launch(self, blocks: int, threads: int, parameters: Any, **_: Any) -> None:
        (lease,) = parameters
        control = _at(lease["control"], CONTROL, 1)
        control["num_stats"] = 0
        while control["next"]["ending"][0] == RUNNING and control["next"]["superstep"][0] < lease["end"]:
            self._superstep(lease, control[0])

    def _superstep(self, lease: Any, control: Any) -> None:
        program, plan, n = self._program, control["next"], int(lease["num_owned"])
        key, number = int(lease["control"]), int(plan["superstep"])
        posts = program.delivery is Delivery.DIRECT
        if plan["remaining"] == OVERFLOWED:
            memory, ran, given = self._begun.pop(key)
            bits = _at(lease["direct"]["overflowed"], np.uint8, -(-n // 32) * 4)
            chosen = np.flatnonzero(np.unpackbits(bits, bitorder="little")[:n])
            bits[:] = 0
        else:
            memory, ran, given = self._memory(lease, number), np.full(n, IDLE, np.uint8), []
            chosen = np.arange(n)
            if posts:
                memory.offsets, memory.messages = self._sorted_messages(lease, number)
        arguments = np.array(lease["in"])
        for i, values in enumerate(self._columns_in_order):
            arguments["columns"][i] = values.ctypes.data
        for name, values in self._walked.items():
            if isinstance(name, int):
                arguments["out_columns"][name] = values.ctypes.data
            else:
                arguments[name] = values.ctypes.data
        if lease["packed"]["num_chains"] and program.consumption is Consumption.LISTED and not posts:
            # Vertices list at the positions of their edges among all, where blocks have room for those of a chain.
            lists = [np.zeros(max(1, memory.sources.size), dtype) for dtype in self._layout.message.stored]
            assert all(lease["in"]["lists"][: len(lists)])
            for i, own in enumerate(lists):
                arguments["lists"][i] = own.ctypes.data
        for v in chosen.tolist():
            self._functions._one(memory, arguments.ctypes.data, number, v)
        ran[chosen] = memory.ran[chosen]
        given.append((chosen[(ran[chosen] != IDLE) & (ran[chosen] & OVERFLOW == 0)], memory.given.copy()))
        if posts and _at(arguments["num_direct"], np.uint64, 1)[0] > arguments["direct_capacity"]:
            overflowed = (ran != IDLE) & (ran & OVERFLOW != 0)
            assert overflowed.any()
            bits = _at(lease["direct"]["overflowed"], np.uint8, -(-n // 32) * 4)
            packed = np.packbits(overflowed, bitorder="little")
            bits[: packed.size] = packed
            self._begun[key] = memory, ran, given
            plan["ending"] = NO_CAPACITY
            self._end_by_fault(control, memory)
            return
        if self._end_by_fault(control, memory):
            return
        self._end(lease, control, memory, ran != IDLE, given)

    def _end_by_fault(self, control: Any, memory: Memory) -> bool:
        if memory.fault:
            control["faults"][int(control["next"]["superstep"]) & 1] = memory.fault
            control["next"]["ending"] = FAULTED
        return bool(memory.fault)

    def _memory(self, lease: Any, number: int) -> Memory:
        layout, n, num_places = self._layout, int(lease["num_owned"]), int(lease["num_lids"])
        size, parity = layout.record.structure.itemsize, number & 1
        offsets, sources = self._rows(lease)
        bits = _at(lease["sent"][parity], np.uint8, -(-num_places // 32) * 4)

        def records(of: int) -> Any:
            return _at(lease["records"][of], np.uint8, num_places * size).reshape(num_places, size)

        return Memory(
            layout=layout,
            pointers={},
            offsets=offsets,
            sources=sources,
            messages=None,
            status=_at(lease["status"], np.uint8, n),
            sent=np.unpackbits(bits, bitorder="little")[:num_places],
            records=records(parity) if size else np.zeros((num_places, 1), np.uint8),
            next_sent=np.zeros(n, np.uint8),
            next_records=records(1 - parity) if size else np.zeros((num_places, 1), np.uint8),
            given=np.zeros((n, max(1, 8 * num_cells(layout.aggregates.dtypes))), np.uint8),
            ran=np.full(n, IDLE, np.uint8),
            num_vertices=0,
            num_edges=0,
            direct_capacity=0,
        )

    def _rows(self, lease: Any) -> tuple[Any, Any]:
        """Return rows of in-edges one after another: those that change have room behind them."""
        edges, n = lease["in_edges"], int(lease["num_owned"])
        if lease["packed"]["num_chains"]:
            program, names = self._program, self._program.columns_of_edges
            types = [self._columns.get(name, np.dtype(np.float64)) for name in names]
            offsets, ends, values = _unpacked(lease["packed"], n, types)
            columns = dict(zip(names, values, strict=True))
            self._columns_in_order = [columns[name] for name in program.edge_columns]
            if program.reads_edges:
                walked = [columns[name] for name in program.read_columns]
                self._walked = self._edges_to_walk(lease, offsets, ends, walked)
            return offsets, ends
        offsets = np.zeros(n + 1, np.uint64)
        if not edges["ends"]:  # nobody reads them
            return offsets, np.zeros(0, np.uint32)
        begins = _at(edges["offsets"], np.uint64, n + 1)
        degrees = _at(edges["degrees"], np.uint32, n)
        np.cumsum(degrees, out=offsets[1:])
        self._columns_in_order = []
        if (offsets == begins).all():
            return offsets, _at(edges["ends"], np.uint32, int(offsets[-1]))
        at = np.repeat(begins[:-1] - offsets[:-1], degrees).astype(np.int64) + np.arange(int(offsets[-1]))
        size = int(at.max(initial=-1)) + 1
        for i, column in enumerate(self._program.edge_columns):
            values = _at(lease["in"]["columns"][i], self._columns[column], size)[at]
            self._columns_in_order.append(values)
        return offsets, _at(edges["ends"], np.uint32, size)[at]

    def _edges_to_walk(self, lease: Any, offsets: Any, ends: Any, columns: Any) -> dict[str, Any]:
        """Return rows as compute() walks them, where blocks have room for those of a chain."""
        num_lids, own_gids = int(lease["num_lids"]), lease["packed"]["gids"]
        gids = _at(own_gids, np.uint32, num_lids)[ends] if own_gids else ends
        ids = _at(lease["in"]["ids"], np.int32 if self._layout.narrow_ids else np.int64, num_lids)
        assert all(lease["in"][name] for name in ("out_offsets", "out_gids", "out_ids"))
        rows = {"out_offsets": offsets, "out_gids": gids, "out_ids": ids[ends].astype(np.int64)}
        return rows | {i: np.ascontiguousarray(values) for i, values in enumerate(columns)}

    def _sorted_messages(self, lease: Any, number: int) -> tuple[Any, Any]:
        arguments, direct, n = lease["in"], lease["direct"], int(lease["num_owned"])
        counted = _at(arguments["num_direct"], np.uint64, 1)
        count, size = int(counted[0]) if number else 0, max(1, self._layout.message.structure.itemsize)
        kinds, targets = (
            _at(arguments["direct_kinds"], np.uint8, count),
            _at(arguments["direct_targets"], np.int64, count),
        )
        ids, places = _at(direct["sorted_ids"], np.int64, n), _at(direct["lids_of_gids"], np.uint32, n)
        found = np.array(
            [
                places[t]
                if k == 0 or not direct["sorted_ids"]
                else _at(direct["lids_of_ids"], np.uint32, n)[np.searchsorted(ids, t)]
                for k, t in zip(kinds, targets, strict=True)
            ],
            dtype=np.int64,
        )
        offsets = np.zeros(n + 1, np.uint64)
        offsets[1:] = np.cumsum(np.bincount(found, minlength=n))
        rows = _at(arguments["direct_messages"], np.uint8, count * size).reshape(count, size)
        counted[0] = 0
        return offsets, rows[np.argsort(found, kind="stable")]

    def _end(self, lease: Any, control: Any, memory: Memory, ran: Any, given: Any) -> None:
        """Show what was written to edges, count, and plan the next superstep."""
        program, plan, arguments = self._program, control["next"], lease["in"]
        n, number = int(lease["num_owned"]), int(plan["superstep"])
        now, has_run = plan.copy(), bool(ran.any())
        counts = has_run or bool(lease["counts_idle"]) or bool(plan["counts_idle"])
        plan["has_woken"] = plan["counts_idle"] = 0
        if not counts:
            plan["ending"] = FINISHED
            self._run_master(lease, control, now, has_run=has_run, counts=counts)
            return
        if lease["wrote"] and lease["carries_on"]:
            self._commit(arguments, np.flatnonzero(ran))
        elif lease["wrote"]:  # which the hosts of all ranks ask for
            bits = _at(lease["wrote"], np.uint8, -(-n // 32) * 4)
            wrote = np.packbits(ran, bitorder="little")
            bits[: wrote.size] |= wrote
        degrees = _at(arguments["out_degrees"], np.uint32, n)
        sends = (memory.next_sent != 0) & (degrees > 0)
        sent_edges = int(degrees[sends].sum())
        if program.delivery is Delivery.DIRECT:
            sent_edges = int(_at(arguments["num_direct"], np.uint64, 1)[0])
        else:
            bits = _at(lease["sent"][(number + 1) & 1], np.uint8, -(-int(lease["num_lids"]) // 32) * 4)
            packed = np.packbits(sends, bitorder="little")
            bits[:] = 0
            bits[: packed.size] = packed
        aggregates = self._layout.aggregates
        cells = _at(lease["aggregates"], np.uint64, max(1, num_cells(aggregates.dtypes)))
        for first, aggregator in zip(aggregates.cells, program.aggregators, strict=True):
            if not (aggregator.persistent and lease["carries_on"]):
                dtype = aggregator.field.dtype()
                for i, identity in enumerate(np.broadcast_to(aggregator.identity, dtype.shape or 1)):
                    cells[first + i] = 0
                    cells[first + i : first + i + 1].view(dtype.base)[0] = identity
        for vertices, rows in given:
            for row in rows[vertices]:
                memory.keep_fault(NO_VERTEX, self._functions.fold(cells, row))
        if self._end_by_fault(control, memory):
            return
        active = int(np.count_nonzero(memory.status == ACTIVE))
        plan["counts_idle"] = bool(lease["asks_master"] and lease["counts_messages"] and sent_edges)
        plan["retired_edges"] = degrees[memory.status == RETIRED].clip(1).sum()  # as they add up
        stats = _at(lease["stats"], STATS, int(control["num_stats"]) + 1)
        num_read = _at(lease["packed"]["num_read"], np.uint64, 1)
        num_bytes, num_read[0] = 4 * int(num_read[0]), 0
        counted = number, int(plan["direction"]), int(ran.sum()), sent_edges, 1, 0, 1.0, 0, num_bytes
        stats[int(control["num_stats"])] = counted
        control["num_stats"] += 1
        plan["superstep"], plan["remaining"] = number + 1, WHOLE
        plan["frontier"] = FRONTIER_BITS
        plan["ending"] = FINISHED if active == 0 and sent_edges == 0 else RUNNING
        self._run_master(lease, control, now, has_run=has_run, counts=counts)

    def _run_master(self, lease: Any, control: Any, now: Any, **facts: bool) -> None:
        if self._master is not None:
            self._master.run(lease, control, now, **facts)

    def _commit(self, arguments: Any, vertices: Any) -> None:
        for k, dtype in enumerate(self._program.edge_state_dtypes):
            for v in vertices.tolist():
                begin, end = (
                    _at(arguments["out_offsets"] + np.uint64(8 * v), np.uint64, 2).astype(int).tolist()
                )
                pending, committed = (
                    _at(arguments[kind][k], dtype, end) for kind in ("pending", "committed")
                )
                committed[begin:end] = pending[begin:end]


def _unpacked(packed: Any, num_owned: int, types: list[Any]) -> tuple[Any, Any, list[Any]]:
    """Return where rows begin, their ends and columns, of pages of which the first are elsewhere; they are all read."""
    chains = _at(packed["chains"], np.uint32, int(packed["num_chains"]) + 1)
    num_pages, begin = int(chains[-1]), int(packed["num_resident"])
    first_words = _at(packed["first_words"], np.uint64, num_pages + 1).astype(int)
    first_rows = _at(packed["first_rows"], np.uint32, num_pages + 1).astype(int)
    rows: list[list[int]] = [[] for _ in range(num_owned)]
    columns: list[list[Any]] = [[] for _ in types]
    fed = _fed_pages(packed, np.diff(first_words))
    for page, (first, end) in enumerate(itertools.pairwise(first_words.tolist())):
        words = packed["resident" if end <= begin else "words"] + np.uint64(4 * first)
        own = fed[page] if page in fed else _at(words, np.uint32, end - first).tolist()
        no_rows: list[list[int]] = [[]] * int(
            first_rows[page + 1] - first_rows[page]
        )  # where it did not come
        read = read_rows(own, int(packed["first_row"]) + int(first_rows[page])) if own else no_rows
        num_there = 0
        for number, (values, dtype) in enumerate(zip(columns, types, strict=True)):
            place, num_arcs = 0, sum(map(len, read))
            if packed["column_places"] and not int(packed["absent_columns"]) >> number & 1:
                num_there += 1
                place = int(_at(packed["column_places"], np.uint32, num_there * num_pages)[-num_pages:][page])
            is_there = place and num_arcs
            values.append(read_numbers(own[place:], dtype) if is_there else np.ones(num_arcs, dtype))
        for row, targets in enumerate(read, int(first_rows[page])):
            if num_owned:
                rows[row] += targets
        if end > begin:
            _at(packed["num_read"], np.uint64, 1)[0] += end - first
    if not num_owned:
        return None, None, []
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.uint64)
    ends = np.array([target for row in rows for target in row], dtype=np.uint32)
    if packed["lids_of_rows"]:
        ends = np.array([_lid_of(packed, target) for target in ends.tolist()], dtype=np.uint32)
    return offsets, ends, [np.concatenate(values) for values in columns]


def _lid_of(packed: Any, row: int) -> int:
    """Return the local id of a row of any rank."""
    word = int(_at(packed["lids_of_rows"], np.uint64, row // 32 + 1)[-1])
    bits, first, bit = word & 0xFFFFFFFF, word >> 32, row % 32
    assert bits >> bit & 1
    if first >> 31:
        return int(_at(packed["other_lids"], np.uint32, 32 * (first - (1 << 31)) + bit + 1)[-1])
    return first + (bits & (1 << bit) - 1).bit_count()


def _pass_over_pages(packed: Any) -> None:
    """Take all pages, as a kernel does that ends no superstep: the host counts the sweep."""
    _unpacked(packed, 0, [])
    _at(packed["num_sweeps"], np.uint32, 1)[0] -= 1


def _fed_pages(packed: Any, sizes: Any) -> dict[int, list[int]]:
    """Return the words of pages that come from disk, taken in the order of chains; this sweep is over then."""
    num_loads, num_slots = int(packed["num_loads"]), int(packed["num_slots"])
    if not num_loads:
        return {}
    load_of, places = (_at(packed[name], np.uint32, sizes.size) for name in ("load_of", "place_in_load"))
    sweeps, left = (
        _at(packed["num_sweeps"], np.uint32, 1),
        _at(packed["pages_of_load"], np.uint32, num_loads).copy(),
    )
    arrived, released = (
        _at(packed["arrived"], np.uint32, num_slots),
        _at(packed["released"], np.uint32, num_loads),
    )
    chains = _at(packed["chains"], np.uint32, int(packed["num_chains"]) + 1).tolist()
    found, sweep = {}, int(sweeps[0])
    for chain in _at(packed["order"], np.uint32, int(packed["num_chains"])).tolist():
        for page in range(chains[chain], chains[chain + 1]):
            load = int(load_of[page])
            if load == NO_LOAD:
                continue
            slot = (sweep * num_loads + load) % num_slots
            while (
                arrived[slot] != sweep * num_loads + load + 1 and not _at(packed["failed"], np.uint32, 1)[0]
            ):
                time.sleep(1e-5)
            at = int(packed["ring"]) + 4 * (slot * int(packed["slot_words"]) + int(places[page]))
            found[page] = _at(at, np.uint32, int(sizes[page])).tolist()
            left[load] -= 1
            if left[load] == 0:
                released[load] = sweep + 1
    if _at(packed["failed"], np.uint32, 1)[0]:
        return {page: [] for page in found}
    sweeps[0] += 1
    return found
