"""The types of a program's slots and outbox record, found by compiling its functions; and Numba's errors, explained."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np

from sigps.compiler.cpu.rows import Dtypes
from sigps.compiler.dispatchers import summable
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.compiler.source import as_written
from sigps.errors import CompileError

__all__ = ["infer_types", "slot_ops"]


def infer_types(program: VertexProgram, names: dict[str, Any], read: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Return the types of the slots and of the outbox record, which lift() and compute() have once they are compiled.

    Args:
        program: The program.
        names: Its functions, as dispatchers.
        read: Types of the edge columns that compute() reads.

    Raises:
        CompileError: If the types do not fit together.
    """
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
        lifted = _return_type(program, names["lift"], (env, params, of(program.message_dtypes)))
        slots = tuple(summable(_dtype(t), op) for t, op in zip(lifted, slot_ops(program), strict=True))
        inbox = of(slots)
    edges: Any = numba.types.Tuple([])
    if program.reads_edges:
        columns = numba.types.Tuple([array(d) for d in read])
        u64 = numba.types.uint64  # or compute() would test at every edge whether its position is negative
        parts = [u64, u64, array(np.dtype(np.uint32)), array(np.dtype(np.int64)), columns]
        if program.reads_edge_links:
            states = numba.types.Tuple([array(d) for d in program.edge_state_dtypes])
            rows = [array(np.dtype(t)) for t in (np.uint32, np.uint64, np.uint32, np.uint32, np.int64)]
            parts.append(numba.types.Tuple([*rows, states, states]))
        edges = numba.types.Tuple(parts)
    direct: Any = numba.types.Tuple([])
    if program.delivery is Delivery.DIRECT:
        dtypes = [np.dtype(t) for t in (np.int64, np.uint8, np.int64, np.uint32)] + [*program.message_dtypes]
        direct = numba.types.Tuple([array(d) for d in dtypes])
    read_only = env, params, of(program.aggregate_dtypes), env  # the second: (id, out_degree, in_degree)
    given = *read_only, of(program.state_dtypes), inbox, numba.types.boolean, edges, direct
    outcome = _return_type(program, names["compute"], given)
    record = tuple(_dtype(t) for t in outcome[2])
    if program.precision == "single":
        record = tuple(np.dtype(np.float32) if d == np.float64 else d for d in record)
    return slots, record


def slot_ops(program: VertexProgram) -> list[str]:
    """Return the operation of each slot; listed messages have none, and begin as sums do."""
    if program.consumption is Consumption.LISTED:
        return ["sum"] * len(program.message)
    return [slot.op for slot in program.slots for _ in slot.names]


def _return_type(program: VertexProgram, function: Any, given: tuple[Any, ...]) -> Any:
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
    """Return Numba's error as one with file, line and the first complaint."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [(file, int(line)) for file, line in re.findall(r'File "([^"]*)", line (\d+)', text)]
    lines += [(file, int(line)) for file, line in re.findall(r"defined at (\S+) \((\d+)\)", text)]
    line = next((n for file, n in reversed(lines) if _is_same_file(file, program.file)), program.line)
    noise = (
        "Failed", "During", "-", "File", "^", "[1", "[2", "Overload", "There are", "Rejected", "This error", "For more",
    )  # fmt: skip
    parts = [part.strip() for part in text.splitlines() if part.strip()]
    complaints = (p for p in parts if not p.startswith(noise) and "pipeline" not in p)
    complaint = next(complaints, "types do not fit")
    if complaint.endswith(":"):
        at = parts.index(complaint) + 1
        complaint += " " + "".join(parts[at : at + 2]).lstrip("> ")
    complaint = re.sub(r"\b__[sapc]_(?=\w)", "self.", as_written(complaint))
    return CompileError(
        f"{program.name}: this cannot be compiled: {complaint.rstrip('.')}. "
        "A variable keeps one type; use numbers, tuples, math and NumPy scalar functions",
        file=program.file,
        line=line,
        source=linecache.getline(program.file, line).strip(),
    )


def _is_same_file(shown: str, file: str) -> bool:
    """Tell whether a path that Numba shows is this file; it shows long ones relative to the current folder."""
    return file == shown or Path(file) == Path.cwd() / shown or file.endswith(shown.lstrip("./"))
