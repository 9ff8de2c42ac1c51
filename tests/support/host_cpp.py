"""CUDA C++ that needs no GPU, compiled by the host's C++ compiler and loaded."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sigps.kernels import cuda as kernels
from sigps.native import cache

__all__ = [
    "LIBRARY_FLAGS",
    "compiled",
    "find_compiler",
    "has_compiler",
    "host_functions",
    "host_library",
    "loaded",
]

FOLDER = Path(kernels.__file__).parent

LIBRARY_FLAGS = ("-shared", "-fPIC", "-fno-gnu-unique")
"""Of a library with statics of its own: g++ makes those of templates one in a process, whatever type each has there."""

_QUALIFIERS = {"__device__": "", "__forceinline__": "inline"}

_TEAM_OF_THREADS = """
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#define SIGPS_WARP_SIZE 1
namespace sigps {
inline pthread_barrier_t barrier_of_team;
inline thread_local uint32_t rank_in_team;
inline uint32_t member_of_block() { return rank_in_team; }
inline uint32_t member_of_warp() { return 0; }
inline void sync_block() { pthread_barrier_wait(&barrier_of_team); }
struct Team;
template <class T> T of_other(const Team &, T value, uint32_t bit) {
  static T of_member[32];
  of_member[rank_in_team] = value;
  sync_block();
  value = of_member[rank_in_team ^ bit];
  sync_block();
  return value;
}
}
extern "C" void begin_team_of(uint32_t members) { pthread_barrier_init(&sigps::barrier_of_team, nullptr, members); }
extern "C" void be_member(uint32_t rank) { sigps::rank_in_team = rank; }
"""
"""What `team.cuh` needs of a block, whose warps or threads are threads of the host."""

_WARP_OF_ONE = """
#include "integers.cuh"
namespace sigps {
struct Found {};
inline int64_t forget_found(uint32_t *, uint32_t *, uint64_t, uint64_t) { return 0; }
// Common targets by comparing all of them.
inline int64_t find_by_warp(uint32_t *targets, uint32_t *, uint64_t first, uint64_t at, uint64_t end, uint64_t begin,
                            uint64_t, uint64_t stop, uint64_t &next_at, uint64_t &next_other) {
  for (; at < end; ++at) {
    if (at > first && targets[at - 1] == targets[at]) continue;
    for (uint64_t i = begin; i < stop; ++i)
      if (targets[i] == targets[at]) {
        next_at = at;
        next_other = i;
        return 0;
      }
  }
  next_at = end;
  next_other = stop;
  return 0;
}
// One lane takes what is found, one after another.
inline int64_t find_for_lanes(uint32_t *targets, uint32_t *cells, uint64_t first, uint64_t at, uint64_t end,
                              uint64_t begin, uint64_t other, uint64_t stop, uint64_t &next_at, uint64_t &next_other) {
  return find_by_warp(targets, cells, first, at, end, begin, other, stop, next_at, next_other);
}
inline int64_t count_lanes(bool holds, int64_t &count) {
  count = holds;
  return 0;
}
template <class T> inline int64_t step_of_lanes(int64_t, T value, T &other) {
  other = value;
  return 0;
}
inline uint64_t next_for_warp(unsigned long long *count) { return (*count)++; }
}
"""
"""What stands in the place of `warp_neighbors.cuh`, where one thread is all lanes."""

_ARGUMENTS = {
    "sigps_compute": "pqupuupp",
    "sigps_compute_listed": "pquqqupp",
    "sigps_deliver": "pqpuuqp",
    "sigps_lift": "pqpp",
    "sigps_merge": "pup",
    "sigps_fold": "pp",
    "sigps_list": "pqp",
}
_TYPES: dict[str, Any] = {"p": ctypes.c_void_p, "q": ctypes.c_int64, "u": ctypes.c_uint32}


def host_functions(source: str, defines: Mapping[str, str]) -> dict[str, Any]:
    """Compile a program's adapters; return the functions of `abi.cuh` that it has, by name."""
    library = host_library(source, tuple(defines.items()))
    found = {}
    for name, types in _ARGUMENTS.items():
        if hasattr(library, name):
            function = getattr(library, name)
            function.argtypes, function.restype = [_TYPES[t] for t in types], ctypes.c_uint32
            found[name] = function
    for name in ("begin_team_of", "be_member"):
        if hasattr(library, name):
            found[name] = getattr(library, name)
    return found


def find_compiler() -> str | None:
    """Return the host's C++ compiler, if there is one."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def has_compiler() -> bool:
    return find_compiler() is not None


def compiled(texts: Mapping[str, str], *flags: str) -> bytes:
    """Compile the last of these files, which may take the others, for the host; return the library.

    It is kept with what sigps compiles, for other processes. Skips the test where there is no compiler.
    """
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler (c++, g++, clang++)")
    command = [compiler, *LIBRARY_FLAGS, *flags]
    text = hashlib.sha256(repr((_version(compiler), command, texts)).encode()).hexdigest()
    key = f"library of the host {text}"
    with _one_at_a_time(text):
        kept = cache.read(key)
        if kept is None:
            kept = _library([*command, *_standard_headers(command, [*texts.values()][-1])], texts)
            cache.write(key, kept)
    assert isinstance(kept, bytes)
    return kept


def _library(command: list[str], texts: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text)
        subprocess.run([*command, "-I.", [*texts][-1], "-o", "library.so"], cwd=folder, check=True)
        return (Path(folder) / "library.so").read_bytes()


def _standard_headers(command: Sequence[str], text: str) -> list[str]:
    """Return how to take the standard headers of a text as they were compiled before: they are two fifths of its time.

    A compiler that cannot take them so reads them.
    """
    headers = re.findall(r"#include <.*>", text)
    if len(headers) < _MANY:
        return []
    flags = [flag for flag in command[1:] if not flag.startswith("-D") and flag != "-shared"]
    name = hashlib.sha256(repr((_version(command[0]), flags, headers)).encode()).hexdigest()[:16]
    folder = cache.cache_dir() / "headers" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            own = Path(made) / "headers"
            own.mkdir()
            (own / "all.hpp").write_text("\n".join(headers))
            subprocess.run([command[0], *flags, "-x", "c++-header", "all.hpp"], cwd=own, check=True)
            with contextlib.suppress(OSError):  # another process was first
                own.rename(folder)
    return ["-include", str(folder / "all.hpp")]


_MANY = 8
"""Headers, fewer of which take no time."""


@contextlib.contextmanager
def _one_at_a_time(text: str) -> Iterator[None]:
    """Let ranks that are threads, and other processes of the tests, wait for who compiles a text, and find it kept."""
    path = Path(tempfile.gettempdir()) / f"sigps-tests-compile-{os.getuid()}-{text[:2]}"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def loaded(library: bytes) -> ctypes.CDLL:
    """Load a library, or one more copy of it."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        return ctypes.CDLL(file.name)


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


@functools.lru_cache(maxsize=256)
def host_library(source: str, defines: tuple[tuple[str, str], ...] = ()) -> ctypes.CDLL:
    """Compile a source for the host, or skip where there is no compiler."""
    texts = {file.name: file.read_text() for file in FOLDER.glob("*.cuh")}
    if "SIGPS_HOST_WARP" not in source:
        texts["warp_neighbors.cuh"] = _WARP_OF_ONE
    texts["program.cpp"] = _TEAM_OF_THREADS + source
    flags = ["-std=c++17", "-O0", "-fno-strict-aliasing", "-fno-builtin", "-Wno-attributes"]
    macros = [f"-D{name}={value}" for name, value in (*_QUALIFIERS.items(), *defines)]
    return loaded(compiled(texts, *flags, *macros))
