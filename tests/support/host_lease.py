"""`lease.cu` as a whole, linked with a program's functions, for the host.

`use_host_as_gpu` and `use_host_as_peers` run leases by the plain schedule; with `run_leases_by_their_text` they go
through the very text of the kernels, which check their invariants (SIGPS_DEBUG), on the structures that the engine
fills. A block is a thread of the host, with a library of its own for what its threads share, which take turns; ranks
that are threads write into each other's memory as it is. Barriers of blocks and of GPUs are those of the text.
"""

from __future__ import annotations

import ctypes
import functools
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host_gpu
import numpy as np
import pytest
from cuda_twin import layout_of
from host_cpp import FOLDER, compiled
from host_kernels import Copies, entries_of, host_kernels, kernels_of, launcher, text_of

from sigps.compiler.cuda import compile as cuda
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.cuda.functions import Functions
from sigps.compiler.cuda.master import master_source
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu
from sigps.engine.gpu import packed_edges
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.launch import NO_CLUSTER, Cluster, Shape
from sigps.engine.gpu.variant import LeaseForm, Packing, Variant

__all__ = ["program_kernels", "run_leases_by_their_text"]

THREADS = 64

THREADS_OF_TILES = 1024
"""Where in-edges lie in tiles: a run of slices is for each of 32 warps."""

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
    "ld.acquire.gpu.global.u32": "wait_a_turn(); value = __atomic_load_n(at, __ATOMIC_ACQUIRE);",
    "ld.relaxed.gpu.global.u32": "wait_a_turn(); value = __atomic_load_n(at, __ATOMIC_RELAXED);",
    "st.release.gpu.global.u32": "__atomic_store_n(at, value, __ATOMIC_RELEASE);",
    "atom.add.acq_rel.gpu.global.u32": "old = __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);",
    "st.relaxed.sys.global.u64": "__atomic_store_n(at, value, __ATOMIC_RELAXED);",
    "fence.acq_rel.sys": "__atomic_thread_fence(__ATOMIC_SEQ_CST);",
    "ld.acquire.sys.global.u64": "wait_a_turn(); value = __atomic_load_n(at, __ATOMIC_ACQUIRE);",
}
"""What a statement of the device does, by what stands in it."""

_DEVICE = r"""
#include <cstdlib>
#define __forceinline__ inline
#define __noinline__
static uint64_t nanoseconds_of_host;
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static void __trap() { std::abort(); }
template <class T> static T __ldcg(const T *at) { return *at; }
static float __fdividef(float a, float b) { return a / b; }
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
static void wait_a_turn() {
  leave_core();
  take_turns();
}
static bool __any_sync(uint32_t lanes, bool value) { return __ballot_sync(lanes, value) != 0; }
template <class T, class U> static T atomicMax(T *at, U value) {
  take_turns();
  return replace_at(at, [&](T found) { return max(found, T(value)); });
}
template <class T> static T atomicAnd(T *at, T bits) {
  return replace_at(at, [&](T found) { return T(found & bits); });
}
template <class T, class U> static T atomicSub(T *at, U value) {
  take_turns();
  return replace_at(at, [&](T found) { return T(found - value); });
}
template <class T> static T atomicXor(T *at, T bits) {
  return replace_at(at, [&](T found) { return T(found ^ bits); });
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
namespace sigps { namespace packed {
inline uint32_t load_from_host(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
inline void store_to_host(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
}}
"""
"""What kernels call where pages come through a ring."""


def run_leases_by_their_text(monkeypatch: pytest.MonkeyPatch, blocks: int = 1) -> list[str]:
    """Let the GPUs that `use_host_as_gpu` or `use_host_as_peers` made run leases by `lease.cu`.

    Args:
        monkeypatch: Takes it back.
        blocks: The blocks of a lease.

    Returns:
        The kernels that are launched, in turn.
    """
    monkeypatch.setattr(host_gpu, "GPU", replace(host_gpu.GPU, num_sms=blocks))
    launched: list[str] = []
    monkeypatch.setattr(gpu_variant, "load_variant", functools.partial(_load_variant, launched))
    monkeypatch.setattr(packed_edges, "_heads_kernel", _heads_kernel)
    return launched


def _heads_kernel(gpu: Gpu, is_part: bool, is_fed: bool) -> Any:
    macros = {"SIGPS_PACKED": str(Packing.PART.value)} if is_part else {}
    return host_kernels("heads", macros | (gpu_variant.FED if is_fed else {}))["find_heads_block_mapped"]


def _load_variant(
    launched: list[str], program: VertexProgram, columns: Any, narrow: bool, gpu: Gpu, form: LeaseForm
) -> Variant:
    assert not form.goes_by_edge
    compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=gpu.arch)
    has_cluster, macros = form.may_cluster(compiled), form.macros(compiled)
    with _one_at_a_time:
        library = _library(program, tuple(columns), narrow, has_cluster, tuple(macros.items()))
    lease: Any = _Kernel("run_lease", library, launched)
    few: Any = _Kernel("run_small_frontier", library, launched) if has_cluster else None
    cluster = Cluster(1, THREADS, MOST_MESSAGES, MOST_PLACES) if has_cluster else NO_CLUSTER
    threads = THREADS_OF_TILES if form.has_tiles else THREADS
    return Variant(compiled, lease, Shape(threads, 1), few, cluster, 1, 0, tile_bytes=int(form.has_tiles))


_one_at_a_time = threading.Lock()
"""Of ranks that are threads: they compile the same."""


class _Kernel:
    def __init__(self, name: str, library: Copies, launched: list[str]) -> None:
        self._name, self._library, self._launched = name, library, launched

    def launch(self, blocks: int, threads: int, parameters: Any, **_: Any) -> None:
        self._launched.append(self._name)
        lease = np.ascontiguousarray(parameters[0])

        def run(block: int) -> None:
            with self._library.taken() as library:
                given = ctypes.c_void_p(lease.ctypes.data), ctypes.c_uint32(block), ctypes.c_uint32(blocks)
                getattr(library, f"{self._name}_here")(*given)

        with ThreadPoolExecutor(blocks) as pool:
            list(pool.map(run, range(blocks)))

    launch_cluster = launch


def _replaced(statement: re.Match[str]) -> str:
    return next(text for part, text in _IN_ITS_PLACE.items() if part in statement[0])


@functools.lru_cache(maxsize=64)
def _library(
    program: VertexProgram,
    columns: tuple[tuple[str, np.dtype[Any]], ...],
    narrow: bool,
    has_cluster: bool,
    more: tuple[tuple[str, str], ...],
) -> Copies:
    macros = {"SIGPS_THREADS": THREADS, "SIGPS_BLOCKS": 1, "SIGPS_DEBUG": 1}
    macros["SIGPS_CLUSTER_THREADS"] = THREADS if has_cluster else 0
    macros["SIGPS_BY_TEAM"] = 0  # _ALONE
    if "SIGPS_TILES" in dict(more):
        macros["SIGPS_THREADS"] = THREADS_OF_TILES
    entries = [
        f'extern "C" void run_{name}_here(const Lease *lease, uint32_t block, uint32_t blocks) {{'
        f" blockIdx.x = block; gridDim.x = blocks; run_block([&] {{ run_{name}(*lease); }}); }}"
        for name in ("lease", *(["small_frontier"] if has_cluster else []))
    ]
    return Copies(_linked("lease.cu", program, dict(columns), narrow, macros | dict(more), entries))


def program_kernels(
    file: str, program: VertexProgram, columns: Mapping[str, np.dtype[Any]], *, narrow: bool
) -> dict[str, Any]:
    """Return the kernels of a file, linked with a program's functions, with the `launch` of `device.cuda.Kernel`."""
    kernels = kernels_of(text_of(f"{file}.cu"))
    macros = {"SIGPS_THREADS": THREADS}
    content = _linked(f"{file}.cu", program, columns, narrow, macros, [entries_of(kernels)])
    with Copies(content).taken() as library:
        return {name: SimpleNamespace(launch=launcher(library, name)) for name in kernels}


def _linked(
    file: str,
    program: VertexProgram,
    types: Mapping[str, np.dtype[Any]],
    narrow: bool,
    macros: Mapping[str, Any],
    entries: Sequence[str],
) -> bytes:
    """Compile a file of kernels and a program's functions as one text; return the library."""
    layout = layout_of(program, dict(types), narrow)
    missing = dict.fromkeys((*program.edge_columns, *program.read_columns), np.dtype(np.float64))  # weights
    functions = Functions(program, missing | dict(types))
    functions.infer()
    source, can_fault = functions.source(layout, cuda._empty(program, layout.slots))
    defines = cuda._defines(program, layout, cuda._neutral(program, layout.slots), can_fault)
    threads = (Path(__file__).parent / "host_threads.hpp").read_text()
    text = [threads, _DEVICE, _ALONE]
    text += [_FED] if "SIGPS_FED" in macros else []
    text += [source]
    text += ["" if program.master is None else master_source(program, layout), f'#include "{file}"']
    text += entries
    texts = {path.name: _of_host(path) for path in (*FOLDER.glob("*.cuh"), FOLDER / file)}
    flags = [f"-D{name}={value}" for name, value in {**defines, **macros}.items()]
    return compiled(
        {**texts, "kernels.cpp": "\n".join(text)}, "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", *flags
    )


def _of_host(path: Path) -> str:
    kernel = _ASM.sub(_replaced, path.read_text()) if path.name in _OF_A_LEASE else path.read_text()
    return re.sub(r"extern __shared__ uint4 (\w+)\[\];", r"alignas(16) static uint4 \1[1 << 14];", kernel)


_OF_A_LEASE = ("scatter.cuh", "cluster.cuh", "all_gpus.cuh", "grid.cuh")
"""Files with statements of the device that a lease runs."""
