"""A program's functions and their adapters through Numba to LTO-IR. Imports numba-cuda."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numba
import numpy as np
from cuda.bindings import nvvm
from numba import cuda
from numba.core import errors as numba_errors
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda.core import errors as numba_cuda_errors
from numba.cuda.cudadrv.error import CudaSupportError

from sigps.compiler.cpu.inference import infer_types
from sigps.compiler.cpu.native import compile_for_cpu
from sigps.compiler.cuda.adapters import Dtypes, Layout, Row, emit, write_adapters
from sigps.compiler.cuda.memory import POINTER, accessors
from sigps.compiler.cuda.single import in_single, single_operations
from sigps.compiler.cuda.stores import reporting_changes, reports_changes
from sigps.compiler.cuda.ufuncs import complete_ufuncs
from sigps.compiler.cuda.warps import jit_device, warp_names
from sigps.compiler.dispatchers import compiled_names
from sigps.compiler.program import Delivery, VertexProgram
from sigps.errors import CompileError
from sigps.native.builder import Functions as TypedFunctions
from sigps.native.types import Number

__all__ = ["Functions", "compiling_for"]

_TYPES = {
    "p": POINTER,
    "v": numba.types.void,
    "u4": numba.types.uint32,
    "i8": numba.types.int64,
    "u8": numba.types.uint64,
}


class Functions:
    """A program's functions, compiled for one architecture as far as their types; then as LTO-IR.

    Args:
        program: The program.
        columns: The types of all edge columns that it names.
        arch: As in `sm_90`.
    """

    def __init__(self, program: VertexProgram, columns: Mapping[str, np.dtype[Any]], arch: str) -> None:
        self._program = program
        self._columns = columns
        complete_ufuncs()
        self._capability = _capability(arch)
        is_single = program.precision == "single"
        self._reports_changes = reports_changes(program.module)
        module = reporting_changes(program.module) if self._reports_changes else program.module
        module = in_single(module) if is_single else module
        self._names = compiled_names(replace(program, module=module), jit_device, __name__, _python_of)
        self._names.update(single_operations())
        self._access = {"__np": np, **accessors()}
        if program.reads_neighbors:
            self._names.update(warp_names())
            self._access.update(warp_names())

    def infer(self) -> tuple[Dtypes, Dtypes]:
        """Return the types of the slots and of the outbox record.

        Raises:
            CompileError: If the types in compute() do not fit together; with file and line.
        """
        program = self._program
        real = Number("f", 32 if program.precision == "single" else 64)
        functions = TypedFunctions(program.module, program.namespace, real)
        if program.delivery is Delivery.DIRECT:
            self._define_emit(Row(program.message_dtypes, program.message_dtypes))
        used, read = (
            [self._columns[c] for c in names] for names in (program.edge_columns, program.read_columns)
        )
        return infer_types(program, functions, used, read)

    def compile(self, layout: Layout, empty: list[str]) -> tuple[bytes, ...]:
        """Compile the adapters and all that they call to LTO-IR, a module each.

        Raises:
            CompileError: If CUDA lacks something that a function calls.
        """
        names: dict[str, Any] = {**self._access, **self._names}
        names["edge_function"] = self._names.get("edge")
        modules = []
        for name, (signature, text) in write_adapters(
            self._program, layout, empty, self._reports_changes
        ).items():
            exec(text, names)
            if not signature:
                names[name] = jit_device(names[name])
                continue
            result, *arguments = (_TYPES[t] for t in signature.split())
            with self._explaining():
                code, _ = cuda.compile(
                    names[name],
                    result(*arguments),
                    device=True,
                    abi="c",
                    abi_info={"abi_name": name},
                    output="ltoir",
                    cc=self._capability,
                    forceinline=True,
                )
            modules.append(bytes(code))
        return tuple(modules)

    def _define_emit(self, message: Row) -> None:
        names = dict(self._access)
        exec(emit(message), names)
        # The dispatcher that compute() calls is the one in its globals.
        self._names["emit"] = jit_device(names["emit"])

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            with compiling_for(self._capability):
                yield
        except (numba_errors.NumbaError, numba_cuda_errors.NumbaError) as error:
            # Numba for the CPU tells where a mistake is; what it compiles is only missing here.
            compile_for_cpu(self._program, self._columns)
            text = str(error)
            attribute = re.search(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", text)
            name, module = attribute.groups() if attribute else ("", "")
            raise self._lacks(f"{module}.{name}" if name else text.partition("\n")[0], name) from error
        except KeyError as error:
            # Numba has types of this ufunc, but no code.
            if not error.args or not isinstance(error.args[0], np.ufunc):
                raise
            name = error.args[0].__name__
            raise self._lacks(f"numpy.{name}", name) from error
        except (nvvm.nvvmError, CudaSupportError) as error:
            raise self._lacks(f"something that compute() calls ({error})", "") from error

    def _lacks(self, what: str, name: str) -> CompileError:
        """Say what a GPU lacks, at the line of compute() that names it where one does."""
        program = self._program
        uses = [n.lineno for n in ast.walk(program.module) if isinstance(n, ast.Attribute) and n.attr == name]
        line = min(uses, default=program.line)
        return CompileError(
            f"{program.name}: this cannot be compiled for a GPU, which lacks {what}: "
            "write it with functions that it has, or run it with device='cpu'",
            file=program.file,
            line=line,
            source=linecache.getline(program.file, line).strip(),
        )


def _capability(arch: str) -> tuple[int, int]:
    digits = "".join(c for c in arch if c.isdigit())
    return int(digits[:-1]), int(digits[-1])


@contextlib.contextmanager
def compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Let Numba compile functions that call each other where there is no GPU, or another one.

    Numba compiles a called function for the current device, and only its caller for the architecture that is given.
    """
    original = numba_dispatcher.get_current_device
    numba_dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        numba_dispatcher.get_current_device = original


def _python_of(value: Any) -> Any:
    """Return the Python function of one that is compiled for the CPU (`numba.njit`); other values as they are."""
    return getattr(value, "py_func", value)
