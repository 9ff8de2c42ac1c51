"""Kernels of files of their own, compiled for the host: one block, whose threads take turns (host_threads.hpp)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from host_cpp import FOLDER, compiled, loaded

__all__ = ["Copies", "entries_of", "host_kernels", "kernels_of", "launcher", "library_of", "text_of"]

THREADS = 64

_one_at_a_time = threading.Lock()
"""Of ranks that are threads: a block of a library is in variables of its file."""

_DEVICE = r"""
#include <chrono>
template <class T> static T __ldcg(const T *at) { take_turns(); return *at; }
static uint32_t of_lane(uint32_t lane) { return exchanged[threadIdx.x / 32 * 32 + lane]; }
static void __threadfence() { take_turns(); }
static bool __any_sync(uint32_t lanes, bool value) { return __ballot_sync(lanes, value) != 0; }
static uint32_t __reduce_max_sync(uint32_t, uint32_t value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  for (uint32_t i = 0; i < 32; i++)
    value = max(value, of_lane(i));
  __syncwarp();
  return value;
}
static uint32_t __reduce_add_sync(uint32_t, uint32_t value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 32; i++)
    sum += of_lane(i);
  __syncwarp();
  return sum;
}
template <class T> static T atomicMax(T *at, T value) {
  T found = *at;
  *at = max(found, value);
  return found;
}
namespace sigps {
struct Barrier {
  alignas(128) uint32_t arrived;
  alignas(128) uint32_t generation;
};
inline uint32_t load_acquire(const uint32_t *at) { return *at; }
inline uint32_t load_relaxed(const uint32_t *at) { take_turns(); return *at; }
inline void wait_for_all(Barrier *, uint32_t &generation) { generation++; __syncthreads(); }
template <class Decide> static void wait_for_all(Barrier *barrier, uint32_t &generation, Decide decide) {
  wait_for_all(barrier, generation);
  decide();
  __syncthreads();
}
static uint64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline void fence_for_all() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void store_relaxed_to_all(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
inline uint64_t load_acquire_from_all(const uint64_t *at) {
  leave_core();
  take_turns();
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
}
"""
"""What kernels call of the device, besides what host_threads.hpp has."""

_OF_HOST = """
template <class T> static T __ldcv(const T *at) { return *at; }
namespace sigps { namespace packed {
inline uint32_t load_from_host(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
inline void store_to_host(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
}}
"""
"""What they call where the host writes while they run."""


def host_kernels(
    file: str, macros: Mapping[str, str], threads: int = THREADS, *, meet: bool = False
) -> dict[str, Any]:
    """Return the kernels of a file by name, with the `launch` of `device.cuda.Kernel`: a block of so many threads.

    `meet`: those of ranks that are threads run at once, since they wait for each other.
    """
    given = file, tuple(sorted((macros | {"SIGPS_THREADS": str(threads)}).items()))
    launch: Any = (
        functools.partial(_at_once, _copies(*given))
        if meet
        else functools.partial(launcher, _library(*given))
    )
    return {name: SimpleNamespace(launch=launch(name)) for name in kernels_of(text_of(f"{file}.cu"))}


def _at_once(library: Copies, name: str) -> Any:
    def launch(blocks: int, threads: int, parameters: Sequence[Any], **_: Any) -> None:
        with library.taken() as own:
            _run(getattr(own, f"run_{name}"), parameters)

    return launch


def launcher(library: ctypes.CDLL, name: str) -> Any:
    """Return the `launch` of a kernel of a library that `entries_of` are in."""
    run = getattr(library, f"run_{name}")

    def launch(blocks: int, threads: int, parameters: Sequence[Any], **_: Any) -> None:
        with _one_at_a_time:
            _run(run, parameters)

    return launch


def _run(kernel: Any, parameters: Sequence[Any]) -> None:
    kept = [
        np.array(p.ctypes.data, np.uint64) if isinstance(p, np.ndarray) and p.ndim else np.array(p)
        for p in parameters
    ]
    kernel(*(ctypes.c_void_p(value.ctypes.data) for value in kept))


def text_of(name: str) -> str:
    """Return the text of a file of kernels, without what it includes."""
    left_out = '#include "', "#pragma once", "extern __shared__ uint4 shared_cache"
    lines = (FOLDER / name).read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(left_out))


def kernels_of(text: str) -> dict[str, list[str]]:
    """Return the types of the parameters of the kernels in a text."""
    plain = " ".join(re.sub(r"//.*", "", text).split())
    bounds = r"(?:__launch_bounds__\([^)]*\) )?"
    found = re.findall(rf'extern "C" __global__ void {bounds}(\w+)\((.*?)\) {{', plain)
    return {
        name: [
            re.sub(r"(const )?__grid_constant__ ", "", parameter.strip()).rsplit(" ", 1)[0]
            + (" *" if "*" in parameter.rsplit(" ", 1)[1] else "")
            for parameter in parameters.split(",")
        ]
        for name, parameters in found
    }


def entries_of(kernels: Mapping[str, Sequence[str]]) -> str:
    """Return functions `run_NAME` that run kernels by one block, of pointers to their parameters."""
    text = ""
    for name, types in kernels.items():
        given = ", ".join(f"void *p{i}" for i in range(len(types)))
        passed = ", ".join(f"*({t} *)p{i}" for i, t in enumerate(types))
        text += f'\nextern "C" void run_{name}({given}) {{ run_block([&] {{ {name}({passed}); }}); }}'
    return text


class Copies:
    """A library of which each block that runs beside others has a copy: what its threads share are statics."""

    def __init__(self, content: bytes) -> None:
        self._content, self._idle = content, list[ctypes.CDLL]()

    @contextlib.contextmanager
    def taken(self) -> Iterator[ctypes.CDLL]:
        """Have a copy that nobody else runs."""
        try:
            copy = self._idle.pop()
        except IndexError:
            copy = loaded(self._content)
        yield copy
        self._idle.append(copy)


def library_of(parts: Sequence[str], macros: Mapping[str, Any]) -> ctypes.CDLL:
    """Compile a text for the host, and load it; skip the test where there is no compiler."""
    return loaded(_compiled(parts, macros))


def _compiled(parts: Sequence[str], macros: Mapping[str, Any]) -> bytes:
    defines = [f"-D{name}={value}" for name, value in macros.items()]
    return compiled({"kernels.cpp": "\n".join(parts)}, "-std=c++20", "-O1", "-w", *defines)


_HEADERS = (
    "packed_rows", "rmat", "changing_rows", "editing_rows", "ascending_rows", "given_edges", "trimming", "live",
    "arrivals", "meeting", "trees",
)  # fmt: skip
_TAKEN = rf'#include "((?:{"|".join(_HEADERS)}).cuh)"'


def _included(file: str) -> list[str]:
    """Return the headers that a file takes, each behind those that it takes itself."""
    own = re.findall(_TAKEN, (FOLDER / file).read_text())
    return [name for header in own for name in (*_included(header), header)]


@functools.cache
def _library(file: str, macros: tuple[tuple[str, str], ...]) -> ctypes.CDLL:
    return library_of(_parts(file, macros), dict(macros))


@functools.cache
def _copies(file: str, macros: tuple[tuple[str, str], ...]) -> Copies:
    return Copies(_compiled(_parts(file, macros), dict(macros)))


def _parts(file: str, macros: tuple[tuple[str, str], ...]) -> list[str]:
    text = text_of(f"{file}.cu")
    headers = dict.fromkeys(("edges.cuh", *_included(f"{file}.cu")))
    threads = (Path(__file__).parent / "host_threads.hpp").read_text()
    of_host = _OF_HOST if dict(macros).get("SIGPS_FED") else ""
    return [
        threads,
        _DEVICE,
        of_host,
        *(text_of(header) for header in headers),
        text,
        entries_of(kernels_of(text)),
    ]
