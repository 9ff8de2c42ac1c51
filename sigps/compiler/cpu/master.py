"""A program's master() or next_phase() as machine code of a CPU core."""

from __future__ import annotations

import functools
from typing import Any

from sigps.compiler.cpu.inference import master_types
from sigps.compiler.program import VertexProgram
from sigps.native.builder import Functions
from sigps.native.kernel import Kernel
from sigps.native.primitives import ProgramFunction, keep_fault

__all__ = ["master_for_cpu"]


def master_for_cpu(program: VertexProgram) -> Kernel:
    """Return `master` of a program that has one, compiled at its first call or read from the cache.

    It takes the superstep, the numbers of vertices and edges, the parameters, and the cells of the aggregators.
    """
    return _compiled(program, (program.file, program.line))


@functools.lru_cache(maxsize=256)
def _compiled(program: VertexProgram, place: tuple[str, int]) -> Kernel:
    # Programs with one key are equal, but errors name their own places.
    assert program.master is not None
    functions = Functions(program.master.module, program.master.namespace)
    types = master_types(program.params, program.aggregate_dtypes, program.precision)  # type: ignore[arg-type]
    functions.instance("master", types)  # finds its sites, too: code from the cache may be of another file
    return Kernel(_call_of(ProgramFunction("master")), f"{program.key} master", functions)


def _call_of(master: Any) -> Any:
    def run_master(superstep, num_vertices, num_edges, params, aggregates):  # type: ignore[no-untyped-def]
        result, fault = master((superstep, num_vertices, num_edges), params, aggregates)
        keep_fault(-1, fault)
        return result

    return run_master
