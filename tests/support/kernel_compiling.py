"""Kernels with the macros of a program, compiled and not linked: a tenth of the time, and most of what can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.linking import compile_source
from sigps.kernels import cuda as kernels

__all__ = ["assert_compiles"]


def assert_compiles(compiled: CudaProgram, kernel: str, arch: str, macros: Mapping[str, str]) -> None:
    """Compile a kernel as `link` does, for what calls a program's functions by their types."""
    file = Path(kernels.__file__).parent / f"{kernel}.cu"
    assert compile_source(file.read_text(), file.name, arch, {**compiled.defines, **macros}, file.parent)
