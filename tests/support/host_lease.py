"""`lease.cu` as a whole, linked with a program's functions, for the host: a GPU of one block whose threads take turns.

`use_host_as_gpu` runs leases by the plain schedule; with `run_leases_by_their_text` they go through the very text of
the kernels, which check their invariants (SIGPS_DEBUG), on the structures that the engine fills.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_twin import layout_of
from host_cpp import FOLDER, LIBRARY_FLAGS, find_compiler

from sigps.compiler.cuda import compile as cuda
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.cuda.functions import Functions
from sigps.compiler.cuda.master import master_source
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.launch import NO_CLUSTER, Cluster, Shape
from sigps.engine.gpu.memory_plan import can_cluster
from sigps.engine.gpu.variant import Packing, Variant

__all__ = ["run_leases_by_their_text"]

THREADS = 64
MOST_MESSAGES = 64
"""Of a superstep that the small-frontier kernel runs, which has one block here."""

MOST_PLACES = 12
"""Of its list of targets."""

_ASM = re.compile(r'asm(?: volatile)?\((?:"(?:[^"\\]|\\.)*"|[^"])*?\);')

_IN_ITS_PLACE = {
    "globaltimer": "now = ++nanoseconds_of_host;",
    "mapa": "there = mine;",
    "barrier.cluster": "__syncthreads();",
    "prefetch": ";",
}
"""What a statement of the device does, by what stands in it."""

_DEVICE = r"""
#include <cstdlib>
#define __forceinline__ inline
#define __noinline__
static uint64_t nanoseconds_of_host;
static void __threadfence() {}
static void __trap() { std::abort(); }
static float __fdividef(float a, float b) { return a / b; }
template <class T> static T __shfl_up_sync(uint32_t, T value, uint32_t distance) {
  return from_lane(value, threadIdx.x % 32 >= distance ? threadIdx.x % 32 - distance : threadIdx.x % 32);
}
static uint32_t __reduce_add_sync(uint32_t, uint32_t value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 32; i++)
    sum += uint32_t(exchanged[threadIdx.x / 32 * 32 + i]);
  __syncwarp();
  return sum;
}
static uint32_t __reduce_max_sync(uint32_t, uint32_t value) {
  exchanged[threadIdx.x] = value;
  __syncwarp();
  uint32_t most = 0;
  for (uint32_t i = 0; i < 32; i++)
    most = max(most, uint32_t(exchanged[threadIdx.x / 32 * 32 + i]));
  __syncwarp();
  return most;
}
static bool __any_sync(uint32_t lanes, bool value) { return __ballot_sync(lanes, value) != 0; }
template <class T, class U> static T atomicMax(T *at, U value) {
  take_turns();
  T found = *at;
  *at = max(found, T(value));
  return found;
}
template <class T> static T atomicAnd(T *at, T bits) {
  T found = *at;
  *at &= bits;
  return found;
}
template <class T> static T atomicXor(T *at, T bits) {
  T found = *at;
  *at ^= bits;
  return found;
}
"""

_ALONE = r"""
namespace sigps {
struct Team;
inline uint32_t member_of_block() { return 0; }
inline uint32_t member_of_warp() { return 0; }
inline void sync_block() {}
template <class T> T of_other(const Team &, T value, uint32_t) { return value; }
}
"""
"""What functions ask that may be a team's (`team.cuh`): here each is called by one thread alone."""

_FED = r"""
template <class T> static T __ldcv(const T *at) { return *at; }
template <class T> static T __ldcg(const T *at) { return *at; }
namespace sigps { namespace packed {
inline uint32_t load_from_host(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
inline void store_to_host(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
}}
"""
"""What kernels call where pages come through a ring."""

_GRID = r"""
#pragma once
namespace sigps {
struct Barrier {
  alignas(128) uint32_t arrived;
  alignas(128) uint32_t generation;
};
inline uint32_t load_acquire(const uint32_t *at) { return *at; }
inline void wait_for_all(Barrier *, uint32_t &generation) {
  generation++;
  __syncthreads();
}
template <class Decide> inline void wait_for_all(Barrier *, uint32_t &generation, Decide decide) {
  __syncthreads();
  decide();
  generation++;
  __syncthreads();
}
}
"""
"""In the place of `grid.cuh`: one block, which is also the last one that arrives."""


def run_leases_by_their_text(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the GPU that `use_host_as_gpu` made run leases by `lease.cu`.

    Args:
        monkeypatch: Takes it back.

    Returns:
        The kernels that are launched, in turn.
    """
    launched: list[str] = []
    monkeypatch.setattr(gpu_variant, "load_variant", functools.partial(_load_variant, launched))
    return launched


def _load_variant(
    launched: list[str], program: VertexProgram, columns: Any, narrow: bool, gpu: Gpu, *ways: Any, **more: Any
) -> Variant:
    given = _parameters.bind(program, columns, narrow, gpu, *ways, **more)
    given.apply_defaults()
    how = given.arguments
    packing: Packing = how["packing"]
    for name in ("has_peers", "goes_by_edge", "has_tiles", "in_pieces", "has_tile_columns"):
        assert not how[name]
    assert packing is not Packing.PART
    compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=gpu.arch)
    has_cluster = how["is_mesh"] and can_cluster(compiled) and packing is Packing.NONE
    macros = packing.macros(compiled, has_heads=how["has_heads"]) | (gpu_variant.FED if how["is_fed"] else {})
    assert "SIGPS_HEADS" not in macros  # heads are another kernel's
    library = _library(program, tuple(columns), narrow, how["has_turns"], has_cluster, tuple(macros.items()))
    lease: Any = _Kernel("run_lease", library, launched)
    few: Any = _Kernel("run_small_frontier", library, launched) if has_cluster else None
    cluster = Cluster(1, THREADS, MOST_MESSAGES, MOST_PLACES) if has_cluster else NO_CLUSTER
    return Variant(compiled, lease, Shape(THREADS, 1), few, cluster, 1, 0)


_parameters = inspect.signature(gpu_variant.load_variant)


class _Kernel:
    def __init__(self, name: str, library: ctypes.CDLL, launched: list[str]) -> None:
        self._name, self._launched = name, launched
        self._function = getattr(library, f"{name}_here")

    def launch(self, blocks: int, threads: int, parameters: Any, **_: Any) -> None:
        self._launched.append(self._name)
        lease = np.ascontiguousarray(parameters[0])
        self._function(ctypes.c_void_p(lease.ctypes.data))

    launch_cluster = launch


def _replaced(statement: re.Match[str]) -> str:
    return next(text for part, text in _IN_ITS_PLACE.items() if part in statement[0])


@functools.lru_cache(maxsize=64)
def _library(
    program: VertexProgram,
    columns: tuple[tuple[str, np.dtype[Any]], ...],
    narrow: bool,
    has_turns: bool,
    has_cluster: bool,
    more: tuple[tuple[str, str], ...],
) -> ctypes.CDLL:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler (c++, g++, clang++)")
    types = dict(columns)
    layout = layout_of(program, types, narrow)
    functions = Functions(program, types)
    functions.infer()
    source, can_fault = functions.source(layout, cuda._empty(program, layout.slots))
    defines = cuda._defines(program, layout, cuda._neutral(program, layout.slots), can_fault)
    macros = {"SIGPS_THREADS": THREADS, "SIGPS_BLOCKS": 1, "SIGPS_DEBUG": 1, "SIGPS_TURNS": int(has_turns)}
    macros["SIGPS_CLUSTER_THREADS"] = THREADS if has_cluster else 0
    entries = ["lease", *(["small_frontier"] if has_cluster else [])]
    macros |= dict(more)
    threads = (Path(__file__).parent / "host_threads.hpp").read_text()
    text = [threads.replace("uint64_t words[2];", "uint32_t x, y, z, w;") if more else threads, _DEVICE]
    text += [_ALONE] if more else []
    text += [_FED] if "SIGPS_FED" in macros else []
    text += [source]
    text += ["" if program.master is None else master_source(program, layout), '#include "lease.cu"']
    text += [
        f'extern "C" void run_{name}_here(const Lease *lease) {{ run_block([&] {{ run_{name}(*lease); }}); }}'
        for name in entries
    ]
    with tempfile.TemporaryDirectory() as folder:
        for file in (*FOLDER.glob("*.cuh"), FOLDER / "lease.cu"):
            kernel = _ASM.sub(_replaced, file.read_text()) if file.name in _OF_A_LEASE else file.read_text()
            kernel = re.sub(
                r"extern __shared__ uint4 (\w+)\[\];", r"alignas(16) static uint4 \1[1 << 14];", kernel
            )
            (Path(folder) / file.name).write_text(_GRID if file.name == "grid.cuh" else kernel)
        (Path(folder) / "lease.cpp").write_text("\n".join(text))
        flags = [f"-D{name}={value}" for name, value in {**defines, **macros}.items()]
        command = [
            compiler,
            "-std=c++20",
            "-O1",
            "-w",
            *LIBRARY_FLAGS,
            "-fno-strict-aliasing",
            f"-I{folder}",
        ]
        subprocess.run([*command, *flags, "lease.cpp", "-o", "lease.so"], cwd=folder, check=True)
        return ctypes.CDLL(str(Path(folder) / "lease.so"))


_OF_A_LEASE = ("next_superstep.cuh", "scatter.cuh", "cluster.cuh")
"""Files with statements of the device that a lease on one GPU runs."""
