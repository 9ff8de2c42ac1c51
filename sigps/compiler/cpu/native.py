"""A vertex program compiled for CPU cores: its types, and its loops by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from sigps.compiler.cpu.edge_writes import telling_edge_writes
from sigps.compiler.cpu.functions import adds_floats, build_functions
from sigps.compiler.cpu.inference import infer_types
from sigps.compiler.cpu.rows import Dtypes, rows
from sigps.compiler.program import VertexProgram, empty_value
from sigps.kernels.cpu.arguments import Outbox
from sigps.kernels.cpu.functions import Functions as LoopFunctions
from sigps.native.builder import Functions
from sigps.native.kernel import Kernel
from sigps.native.marshal import Packed

__all__ = ["NativeProgram", "compile_for_cpu"]


@dataclass(eq=False)
class NativeProgram:
    """A vertex program compiled for this processor and one graph's column types.

    Attributes:
        slots: Types of the inbox fields (of the message where messages are listed).
        record: Types of the outbox record's fields.
        empty: The inbox of a vertex without messages.
        priority_form: The program for supersteps in which only the best value is sent; None where there is none.
        monotone: The same program with loops that only look for better keys; None where it is not monotone.
    """

    program: VertexProgram
    slots: Dtypes
    record: Dtypes
    empty: tuple[Any, ...]
    _typed: Functions
    _functions: Callable[[bool, int], LoopFunctions]
    priority_form: NativeProgram | None = None
    monotone: NativeProgram | None = None
    _loops: dict[tuple[str, bool, int], Kernel] = field(default_factory=dict)

    def loop(self, name: str, deterministic: bool = False, num_lanes: int = 1) -> Kernel:
        """Return a loop of `kernels/cpu`, compiled at its first call or read from the cache.

        Args:
            name: Its name.
            deterministic: Whether floats add up in the order of messages, and vertices' contributions stay apart; a
                program that adds up no floats has one loop for both.
            num_lanes: Of the loops of `lanes.py`: runs side by side.
        """
        program = self.program
        deterministic = deterministic and adds_floats(program, self.slots)
        if (name, deterministic, num_lanes) not in self._loops:
            module = import_module(
                f"sigps.kernels.cpu.{next(m for m, loops in LOOPS.items() if name in loops)}"
            )
            loop = getattr(module, name)(self._functions(deterministic, num_lanes))
            key = f"{program.key} {name} {deterministic} {num_lanes}"
            self._loops[name, deterministic, num_lanes] = Kernel(loop, key, self._typed)
        return self._loops[name, deterministic, num_lanes]

    @property
    def has_open_loops(self) -> bool:
        """Whether compute() has a `while`, which may never end."""
        return self._typed.has_open_loops

    def outbox(self, size: int) -> Outbox:
        """Return an empty outbox for so many vertices.

        Every page is touched. Loops store under a mask, and where such a store meets a page that is not mapped yet, the
        processor needs a hundred times as long to find that it has nothing to do.
        """
        sent, records = np.zeros(size, dtype=np.uint8), rows(self.record, size)
        for array in (sent, *records):
            array.fill(0)
        return Outbox(sent, records)


LOOPS = {
    "pull": ("gather_combined", "gather_listed"),
    "push": ("apply_bins", "compute_listed", "scatter_binned", "scatter_direct"),
    "direct_messages": ("combine_messages", "compute_direct"),
    "monotone": ("gather_better", "gather_better_first", "store_last"),
    "edge_schedule": ("combine_edges",),
    "fused": ("run_fused",),
    "grouped": ("gather_grouped", "group_messages", "sort_list"),
    "lanes": ("combine_lanes", "compute_lanes", "gather_lanes", "run_lanes", "scatter_lanes"),
    "live": (
        "find_improved",
        "find_tight",
        "gather_better_listed",
        "order_listed",
        "trim_unsupported",
        "unorder_dependent",
    ),
    "arrivals": ("list_receivers", "next_arrivals", "settle_listed"),
    "linear": ("find_coefficients", "find_residuals", "push_residuals", "sweep_values"),
    "rounds": ("fold_contributions", "run_again", "run_again_grouped"),
    "asynchronous": ("run_blocks",),
    "contraction": ("run_contraction", "settle_contraction", "settle_fold"),
    "residuals": ("add_up", "find_changed", "find_terms", "pass_on"),
}
"""The loops of each module of `kernels/cpu` that are made for programs; a run imports those that it calls."""


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
    return _compile(program, used, read, (program.file, program.line))


@functools.lru_cache(maxsize=256)
def _compile(program: VertexProgram, used: Dtypes, read: Dtypes, place: tuple[str, int]) -> NativeProgram:
    # Programs with one key are equal, but errors name their own places.
    functions = Functions(telling_edge_writes(program), program.namespace)
    slots, record = infer_types(program, functions, used, read)
    ops = program.slot_ops or ["sum"] * len(slots)
    empty = tuple(Packed.of(empty_value(op, d), d) for d, op in zip(slots, ops, strict=True))

    def native(form: VertexProgram, functions: Functions, **forms: Any) -> NativeProgram:
        built = functools.partial(build_functions, form, functions, slots, record)
        return NativeProgram(form, slots, record, empty, functions, built, **forms)

    best, plain = program.priority_form, replace(program, monotone=None)
    best_functions = Functions(best.module, best.namespace) if best else None
    if best is not None and best_functions is not None:
        infer_types(best, best_functions, used, read)  # finds its sites, too
    only_better = replace(program, key=f"{program.key} monotone")
    return native(
        plain,
        functions,
        priority_form=native(best, best_functions) if best and best_functions else None,
        monotone=native(only_better, functions) if _keeps_keys(program, slots, record) else None,
    )


def _keeps_keys(program: VertexProgram, slots: Dtypes, record: Dtypes) -> bool:
    """Tell whether a monotone program's keys have one type from record to slot to state, or are floats throughout."""
    claim = program.monotone
    if claim is None or slots[0] != program.state_dtypes[claim.current]:
        return False
    key = record[claim.record]
    return key == slots[0] or key.kind == slots[0].kind == "f"
