"""Kernels with the macros of a program, compiled and not linked: a tenth of the time, and most of what can be wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.linking import compile_source
from sigps.kernels import cuda as kernels

__all__ = ["assert_compiles", "shared_bytes"]


def assert_compiles(compiled: CudaProgram, kernel: str, arch: str, macros: Mapping[str, str]) -> None:
    """Compile a kernel as `link` does, for what calls a program's functions by their types."""
    file = Path(kernels.__file__).parent / f"{kernel}.cu"
    assert compile_source(file.read_text(), file.name, arch, {**compiled.defines, **macros}, file.parent)


def shared_bytes(compiled: CudaProgram, kernel: str, macros: Mapping[str, str]) -> int:
    """Return the bytes of shared memory that kernels of a file declare, all together, as they are compiled to PTX."""
    from cuda.bindings import nvrtc

    folder = Path(kernels.__file__).parent
    source = (folder / f"{kernel}.cu").read_text()
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), kernel.encode(), 0, [], [])
    defines = [f"-D{name}={value}" for name, value in {**compiled.defines, **macros}.items()]
    options = ["--gpu-architecture=compute_90", "--std=c++17", "-rdc=true", f"-I{folder}", *defines]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(program)
    declared = re.findall(
        rb"^\s*(?:\.weak )?\.shared (?:\.align \d+ )?\.\D(\d+) \S+?(?:\[(\d+)\])?;", ptx, re.M
    )
    return sum(int(bits) // 8 * int(count or 1) for bits, count in declared)
