"""A program's functions and their adapters: their types, and CUDA C++ as LTO-IR."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sigps.compiler.cpu.inference import infer_types
from sigps.compiler.cuda.adapters import EXTERNALS, Dtypes, Layout, Row, direct_type, emit_type, write_source
from sigps.compiler.cuda.lanewise import by_lanes
from sigps.compiler.cuda.stores import reporting_changes, reports_changes
from sigps.compiler.cuda.teams import divided_for, divides
from sigps.compiler.program import Delivery, VertexProgram
from sigps.device.linking import compile_source
from sigps.errors import CompileError, KernelError
from sigps.kernels import cuda as kernels
from sigps.native.builder import Functions as TypedFunctions
from sigps.native.builder import Site
from sigps.native.types import Number

__all__ = ["Functions"]


class Functions:
    """A program's functions, for types of edge columns.

    Args:
        program: The program.
        columns: The types of all edge columns that it names.
    """

    def __init__(self, program: VertexProgram, columns: Mapping[str, np.dtype[Any]]) -> None:
        self._program, self._columns = program, columns
        self._reports_changes = reports_changes(program.module)
        self._has_teams = divides(program)
        module = program.module
        if self._has_teams:
            module = divided_for(program, module) or module
        module = by_lanes(module) if program.reads_neighbors else module
        module = reporting_changes(module) if self._reports_changes else module
        names: dict[str, Any] = {
            **program.namespace,
            **(EXTERNALS if program.reads_neighbors or self._has_teams else {}),
        }
        if program.delivery is Delivery.DIRECT:
            names["emit"] = emit_type(Row(program.message_dtypes, program.message_dtypes))
        real = Number("f", 32 if program.precision == "single" else 64)
        self._typed = TypedFunctions(module, names, real)

    def infer(self) -> tuple[Dtypes, Dtypes]:
        """Return the types of the slots and of the outbox record.

        Raises:
            CompileError: If the types in compute() do not fit together; with file and line.
        """
        program = self._program
        used, read = (
            [self._columns[c] for c in names] for names in (program.edge_columns, program.read_columns)
        )
        return infer_types(program, self._typed, used, read, direct_type(), has_team=self._has_teams)

    @property
    def sites(self) -> list[Site]:
        """Where their arithmetic may have no result: fault k is that of `sites[k - 1]`; after `source`."""
        return self._typed.sites

    @property
    def has_open_loops(self) -> bool:
        return self._typed.has_open_loops

    def source(self, layout: Layout, empty: Sequence[str]) -> tuple[str, bool]:
        """Return the functions of `abi.cuh`, in CUDA C++, and whether one of them may return a fault."""
        return write_source(self._program, layout, self._typed, empty, self._reports_changes)

    def compile(self, source: str, defines: Mapping[str, str], arch: str) -> bytes:
        """Compile their source to LTO-IR.

        Raises:
            CompileError: If CUDA lacks something that a function calls.
        """
        program = self._program
        folder = Path(kernels.__file__).parent
        try:
            return compile_source(source, f"{program.name}.cu", arch, defines, folder)
        except KernelError as error:
            raise CompileError(
                f"{program.name}: this cannot be compiled for a GPU ({error}): run it with device='cpu'",
                file=program.file,
                line=program.line,
                source=linecache.getline(program.file, program.line).strip(),
            ) from error
