"""`sigps_master` of `kernels/cuda/abi.cuh`, written in CUDA C++ around a program's master() or next_phase().

It is a module of its own, which is linked to the kernels: compute() is compiled as if it were not there, and its own
floats have 64 bits and are rounded after every operation, as on CPU cores.
"""

from __future__ import annotations

from sigps.compiler.cpu.inference import master_types
from sigps.compiler.cuda.adapters import (
    HEAD,
    Layout,
    call_of,
    definition,
    env_at,
    load_cells,
    load_params,
    store_cells,
)
from sigps.compiler.program import VertexProgram
from sigps.kernels.cuda.abi import FAULT_SHIFT
from sigps.native.builder import Functions, Site
from sigps.native.cpp import CppFunctions

__all__ = ["find_master_site", "master_source"]


def master_source(program: VertexProgram, layout: Layout) -> str:
    """Return the source of `sigps_master`, for a program with a `master`."""
    return _written(program, layout)[0]


def find_master_site(program: VertexProgram, layout: Layout, fault: int) -> Site:
    """Return the place of a fault that `sigps_master` returned."""
    return _written(program, layout)[1].sites[fault - 1]


def _written(program: VertexProgram, layout: Layout) -> tuple[str, Functions]:
    assert program.master is not None
    functions = Functions(program.master.module, program.master.namespace)
    types = master_types(program.params, program.aggregate_dtypes, program.precision)  # type: ignore[arg-type]
    instance, emitted = functions.instance("master", types), CppFunctions(functions)
    given = [
        *env_at("superstep"),
        *load_params(program, layout.params),
        *load_cells("arguments->aggregates", layout.aggregates),
    ]
    body = call_of(emitted, instance, given, "r")
    body.append(f"if (r_fault != 0) return r_fault << {FAULT_SHIFT};")
    *values, flags = (f"r{i}" for i in range(instance.num_results))
    body += store_cells("aggregates", layout.aggregates, values, program.shared)
    body.append(f"return uint32_t({flags});")
    head = "uint32_t sigps_master(const sigps::Arguments *arguments, int64_t superstep, void *aggregates)"
    return "\n".join([HEAD, emitted.text, *definition(head, body, "__attribute__((noinline))")]), functions
