"""The same compute() against CUDA C++ written by hand, in the same schedule: what the way through Python costs.

The functions of `abi.cuh` in `by_hand.cu` are linked into the lease kernel in the place of those that Numba made,
and run by the same engine on the same layout. The two take turns, so that a GPU that slows down slows both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from measuring import Case, Table, check, run

import sigps
from sigps.apps import BFS, PageRank
from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.linking import compile_source
from sigps.engine.gpu import variant as gpu_variant
from sigps.kernels import cuda as kernels

SOURCE = Path(__file__).with_name("by_hand.cu")

WANTED, AIM = 1.10, 1.02
"""Time of the Python program over that of the one by hand: at most, and hoped for."""

ROUNDS = 21


def compare(case: Case, table: Table, repeats: int) -> None:
    """Time both forms of PageRank and BFS on the device, in turns; `repeats` is not for this."""
    searches = [BFS(source=source) for source in case.sources]
    compare_program("PageRank", [PageRank(iterations=30)], {"rank": are_near}, case, table)
    compare_program("BFS", searches, {"level": np.array_equal, "parent": are_same_ids}, case, table)


def compare_program(
    work: str, programs: list[sigps.Vertex], rules: dict[str, Callable[..., Any]], case: Case, table: Table
) -> None:
    """Time the sum over some runs of one program; stop where the forms give different answers."""
    for program in programs:
        check_agreement(program, case.graph, rules)
    ways: dict[str, Callable[[], Any]] = {"python": contextlib.nullcontext, "by_hand": by_hand}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(ROUNDS):
        for way in sorted(ways, reverse=turn % 2 == 0):  # who begins alternates too
            with ways[way]():
                seconds[way].append(sum(seconds_on_device(program, case.graph) for program in programs))
    ratio = statistics.median(seconds["python"]) / statistics.median(seconds["by_hand"])
    turns = sorted(a / b for a, b in zip(seconds["python"], seconds["by_hand"], strict=True))
    quartiles = turns[ROUNDS // 4], turns[-1 - ROUNDS // 4]
    times = {f"{way}_ms": round(statistics.median(s) * 1e3, 3) for way, s in seconds.items()}
    found = {"ratio": round(ratio, 4), "quartiles": [round(q, 4) for q in quartiles]}
    table.add(
        {"work": f"{work}, by hand", "graph": case.name, "runs": len(programs), **times, **found}
        | {"rounds": ROUNDS, "wanted": WANTED, "aim": AIM},
        f"{times['python_ms']:9.3f} ms from Python {times['by_hand_ms']:9.3f} ms by hand: {ratio:.3f} times"
        f" (half of the turns {quartiles[0]:.3f} to {quartiles[1]:.3f}; wanted {WANTED}, aim {AIM})",
    )


def check_agreement(program: sigps.Vertex, graph: sigps.Graph, rules: dict[str, Callable[..., Any]]) -> None:
    """Stop unless both forms find the same in the same supersteps; compiles and warms both up."""
    ours = run(program, graph)
    with by_hand():
        theirs = run(program, graph)
    check(_form_by_hand.cache_info().currsize > 0, "the engine ran Python's functions both times")
    work = [[(s.direction, s.active, s.messages) for s in result.stats] for result in (ours, theirs)]
    check(work[0] == work[1], f"the supersteps of {program!r} by hand are others")
    for field, is_same in rules.items():
        check(is_same(ours[field], theirs[field]), f"{field} by hand differs from that of {program!r}")


def are_same_ids(a: Any, b: Any) -> bool:
    """Compare ids, some of which are masked: None."""
    return bool(np.array_equal(a.mask, b.mask) and np.array_equal(a.filled(0), b.filled(0)))


def are_near(a: Any, b: Any) -> bool:
    """Compare ranks in single precision, rounded differently here and there."""
    return bool(np.allclose(a, b, rtol=1e-4, atol=0))


def seconds_on_device(program: sigps.Vertex, graph: sigps.Graph) -> float:
    """Run once, and return what the device says that its supersteps took."""
    return float(sum(s.seconds for s in run(program, graph).stats))


_form_of_python = gpu_variant.load_variant


@contextlib.contextmanager
def by_hand() -> Iterator[None]:
    """Let the GPU engine run what `by_hand.cu` says, whatever the program's compute()."""
    with mock.patch.object(gpu_variant, "load_variant", _form_by_hand):
        yield


@functools.lru_cache
def _form_by_hand(*key: Any) -> Any:
    """Return what the engine would make of a program, of functions written by hand."""
    compile_python = gpu_variant.compile_for_cuda

    def compile_both(*given: Any, arch: str, **options: Any) -> CudaProgram:
        return with_functions_by_hand(compile_python(*given, arch=arch, **options), arch)

    with mock.patch.object(gpu_variant, "compile_for_cuda", compile_both):
        return inspect.unwrap(_form_of_python)(*key)


def with_functions_by_hand(compiled: CudaProgram, arch: str) -> CudaProgram:
    """Return a compiled program with the functions of `by_hand.cu` in place of its own."""
    macros = {**compiled.defines, **_places(compiled)}
    folder = Path(kernels.__file__).parent
    module = compile_source(SOURCE.read_text(), SOURCE.name, arch, macros, folder)
    return dataclasses.replace(compiled, functions=(module,))


def _places(compiled: CudaProgram) -> dict[str, str]:
    """Tell by macros where the program's fields stand: a layout that changes changes them too."""
    program = compiled.program
    params = [field.dtype(program.precision) for field in program.params]
    macros = {f"BY_HAND_{program.name}": "1"}
    for fields, dtypes in ((program.states, compiled.states), (program.params, params)):
        for place, (field, dtype) in enumerate(zip(fields, dtypes, strict=True)):
            macros[f"PLACE_OF_{field.name}"] = str(place)
            macros[f"TYPE_OF_{field.name}"] = _c_type(dtype)
    for place, aggregator in enumerate(program.aggregators):
        macros[f"PLACE_OF_{aggregator.field.name}"] = str(place)
    return macros


def _c_type(dtype: np.dtype[Any]) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype.name, f"{dtype.name}_t")
