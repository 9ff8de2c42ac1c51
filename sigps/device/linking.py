"""CUDA C++ to LTO-IR (NVRTC), and LTO-IR to a cubin (nvJitLink), kept on disk. Needs no GPU and no driver."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import importlib.metadata
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from sigps.errors import KernelError
from sigps.kernels import cuda as kernels
from sigps.native import cache

__all__ = ["compile_source", "link_ahead", "link_kernel", "link_modules", "toolchain_versions"]

_TOOLCHAIN = ("cuda-core", "cuda-bindings")
_LIBRARIES = (("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"), ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"))

_importing = threading.Lock()
"""Held while `cuda.core` is imported: a thread that asks for it meanwhile may find it half there."""


def compile_source(source: str, name: str, arch: str, defines: Mapping[str, str], include: Path) -> bytes:
    """Compile CUDA C++ to LTO-IR; O(source), about 0.1 s.

    Args:
        source: The text.
        name: The file's name, for error messages.
        arch: As in `sm_90`.
        defines: Macros; a name may have parameters.
        include: The folder of `#include "..."`.

    Raises:
        KernelError: If the source or a macro is wrong; holds the compiler's messages.
    """
    with _importing:
        from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        name=name,
        arch=arch,
        std="c++17",
        link_time_optimization=True,
        include_path=str(include),
        define_macro=[(macro, value) for macro, value in defines.items()] or None,
    )
    try:
        return bytes(Program(source, "c++", options).compile("ltoir").code)
    except Exception as error:
        raise KernelError(f"{name} cannot be compiled for {arch}: {error}") from error


def link_modules(modules: Sequence[bytes], arch: str) -> bytes:
    """Link LTO-IR to a cubin, with calls between the modules inlined; about 0.2 s.

    Raises:
        KernelError: If a function is missing or the architecture is unknown; holds the linker's messages.
    """
    with _importing:
        from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=arch, link_time_optimization=True)
    codes = [ObjectCode.from_ltoir(module) for module in modules]
    try:
        return bytes(Linker(*codes, options=options).link("cubin").code)
    except Exception as error:
        raise KernelError(f"kernels cannot be linked for {arch}: {error}") from error


_linking: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)  # a lock a key


def link_ahead(
    kernel: str, arch: str, macros: Mapping[str, str] | None = None, functions: Sequence[bytes] = ()
) -> None:
    """Begin to link what is soon asked for, beside other work: `link_kernel` waits for it, and has its errors.

    A first answer with empty caches comes 0.5 to 1.3 s of 4 to 6 earlier for it (docs/measured.md). The process ends
    when the thread has.
    """

    def work() -> None:
        with contextlib.suppress(KernelError):
            link_kernel(kernel, arch, macros, functions)

    threading.Thread(target=work, name=f"link {kernel}").start()


def link_kernel(
    kernel: str, arch: str, macros: Mapping[str, str] | None = None, functions: Sequence[bytes] = ()
) -> bytes:
    """Compile a kernel and link functions into it; what was linked before comes from the cache on disk.

    Args:
        kernel: The name of a file in `sigps/kernels/cuda`, as in `layout`.
        arch: As in `sm_90`.
        macros: Those of the kernel.
        functions: Modules that it calls, LTO-IR.

    Returns:
        A cubin.

    Raises:
        KernelError: If the kernel cannot be compiled or linked.
    """
    macros = macros or {}
    digest = hashlib.sha256(repr(sorted(macros.items())).encode())
    for module in functions:
        digest.update(module)
    key = f"cubin {kernel} {arch} {digest.hexdigest()} {toolchain_versions()}"
    with _linking[key]:
        cubin: bytes | None = cache.read(key)
        if cubin is None:
            file = Path(kernels.__file__).parent / f"{kernel}.cu"
            compiled = compile_source(file.read_text(), file.name, arch, macros, file.parent)
            cubin = link_modules([compiled, *functions], arch)
            cache.write(key, cubin)
    return cubin


def toolchain_versions() -> str:
    """Return the versions that compiled code depends on, from package metadata, without loading the libraries.

    A library that was not installed as a wheel is loaded, and reports its version.
    """
    found = {name: _version(name) for name in _TOOLCHAIN}
    for names, loaded_version in zip(_LIBRARIES, (_nvrtc_version, _nvjitlink_version), strict=True):
        found[names[0]] = next((v for v in map(_version, names) if v), None) or loaded_version()
    return repr(found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nvrtc_version() -> str:
    from cuda.bindings import nvrtc

    return str(nvrtc.nvrtcVersion()[1:])


def _nvjitlink_version() -> str:
    from cuda.bindings import nvjitlink

    return str(nvjitlink.version())
