"""The structures of a lease: NumPy's say the same as C++'s (`lease.cuh`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worked_cases import kite

from sigps.apps import PageRank
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.errors import DeviceError
from sigps.kernels import cuda as kernels
from sigps.kernels import direction
from sigps.kernels.cpu import arguments
from sigps.kernels.cuda import lease
from sigps.kernels.cuda.abi import FAULT_SHIFT

for needed in ("cuda.core",):
    try:
        is_there = importlib.util.find_spec(needed) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        pytest.skip(f"{needed} is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)


def compile_claims(claims: list[str]) -> bytes:
    from sigps.device.linking import compile_source

    columns = {name: values.dtype for name, values in kite().columns.items()}
    program = compile_for_cuda(analyse(PageRank(), "double"), columns, narrow_ids=True, arch="sm_90")
    text = '#define offsetof(t, f) __builtin_offsetof(t, f)\n#include "lease.cuh"\nusing namespace sigps;\n'
    text += "\n".join(f'static_assert({claim}, "");' for claim in claims)
    return compile_source(text, "claims.cu", "sm_90", program.defines, Path(kernels.__file__).parent)


def claims_of(name: str, structure: np.dtype[Any]) -> list[str]:
    """Say where each field lies, those of structures within too, and how large the whole is."""
    assert structure.fields is not None
    claims = [f"sizeof({name}) == {structure.itemsize}"]
    for field, (dtype, offset, *_) in structure.fields.items():
        claims.append(f"offsetof({name}, {field}) == {offset}")
        for inner, (_, begins, *_) in (dtype.fields or {}).items():
            claims.append(f"offsetof({name}, {field}.{inner}) == {offset + begins}")
    return claims


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("Edges", lease.EDGES),
        ("Lease", lease.LEASE),
        ("Peer", lease.PEER),
        ("Control", lease.CONTROL),
        ("Stats", lease.STATS),
        ("NextSuperstep", lease.CONTROL["next"]),
        ("Counters", lease.CONTROL["counters"]),
    ],
)
def test_a_structure_is_laid_out_as_in_cpp(name: str, structure: np.dtype[Any]) -> None:
    assert compile_claims(claims_of(name, structure))


def test_counters_have_a_line_each() -> None:
    claims = [
        f"sizeof(Control::next_task) == {lease.CONTROL['next_task'].itemsize}",
        "sizeof(Counter) == 128",
        "alignof(Control) == 128",
    ]
    assert compile_claims(claims)


def test_constants_are_those_of_cpp() -> None:
    names = {
        "HUB_DEGREE": lease.HUB_DEGREE,
        "SMALL_BEFORE_SWITCH": lease.SMALL_BEFORE_SWITCH,
        "RUNNING": lease.RUNNING,
        "PULL": direction.PULL,
        "PUSH": direction.PUSH,
        "SENDERS_NONE": arguments.SENDERS_NONE,
        "SENDERS_BITMAP": arguments.SENDERS_BITMAP,
        "SENDERS_TEST_EACH": arguments.SENDERS_TEST_EACH,
        "SENDERS_ALL": arguments.SENDERS_ALL,
        "FRONTIER_BITS": lease.FRONTIER_BITS,
        "FRONTIER_LISTS": lease.FRONTIER_LISTS,
        "FRONTIER_DELIVERED": lease.FRONTIER_DELIVERED,
        "WHOLE": lease.WHOLE,
        "OVERFLOWED": lease.OVERFLOWED,
        "PUBLISHING": lease.PUBLISHING,
        "FAULTED": lease.FAULTED,
        "FAULT_BITS": lease.FAULT_BITS,
        "FAULT_SHIFT": FAULT_SHIFT,
    }
    assert compile_claims([f"int({name}) == {value}" for name, value in names.items()])


def test_a_retired_vertex_is_what_the_host_takes_for_one() -> None:
    """`GpuEngine._release` reads the status of vertices by its number."""
    assert compile_claims(["ACTIVE == 0", "HALTED == 1", "RETIRED == 2", "HALTED == HALT"])


def test_a_wrong_claim_is_refused() -> None:
    with pytest.raises(DeviceError, match="claims"):
        compile_claims(["sizeof(Edges) == 1"])
