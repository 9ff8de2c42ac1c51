"""The direction rule of the kernels against a table: compiled for the host, and on a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direction_cases import DIRECTION_CASES, DirectionCase
from host_cpp import LIBRARY_FLAGS

from sigps.kernels import cuda as kernels
from sigps.kernels.direction import FORCED

FOLDER = Path(kernels.__file__).parent

CHOSEN = ["pull", "push"]

INPUTS = np.dtype(
    [
        ("sender_edges", np.uint64),
        ("retired_edges", np.uint64),
        ("num_edges", np.uint64),
        ("num_vertices", np.uint64),
        ("pull_gain", np.uint32),
        ("forced", np.uint32),
        ("can_push", np.uint32),
    ],
    align=True,
)

SOURCE = """
#include "direction.cuh"
struct Inputs {
  uint64_t sender_edges, retired_edges, num_edges, num_vertices;
  uint32_t pull_gain, forced, can_push;
};
#if defined(__CUDACC__)
extern "C" __global__ void choose(const Inputs *inputs, uint32_t *chosen, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
#else
extern "C" void choose(const Inputs *inputs, uint32_t *chosen, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
#endif
    chosen[i] = sigps::choose_direction(inputs[i].sender_edges, inputs[i].retired_edges,
                                        inputs[i].num_edges + inputs[i].num_vertices,
                                        inputs[i].pull_gain, inputs[i].forced, inputs[i].can_push);
}
"""


def inputs_of(cases: list[DirectionCase]) -> Any:
    inputs = np.zeros(len(cases), INPUTS)
    for row, case in zip(inputs, cases, strict=True):
        for name in INPUTS.names or ():
            row[name] = FORCED[case.forced] if name == "forced" else getattr(case, name)
    return inputs


def assert_chosen(chosen: Any) -> None:
    found = {case.why: CHOSEN[number] for case, number in zip(DIRECTION_CASES, chosen.tolist(), strict=True)}
    assert found == {case.why: case.chosen for case in DIRECTION_CASES}


@pytest.fixture(scope="module")
def on_host(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    """The rule as a function of rows of inputs, compiled by the host's C++ compiler."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("no C++ compiler (c++, g++, clang++)")
    folder = tmp_path_factory.mktemp("direction")
    (folder / "choose.cpp").write_text(SOURCE)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", *LIBRARY_FLAGS, f"-I{FOLDER}"]
    command = [compiler, *flags, "choose.cpp", "-o", "choose.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "choose.so"))

    def choose(inputs: Any) -> Any:
        chosen = np.full(inputs.size, 9, np.uint32)
        addresses = ctypes.c_void_p(inputs.ctypes.data), ctypes.c_void_p(chosen.ctypes.data)
        library.choose(*addresses, ctypes.c_uint32(inputs.size))
        return chosen

    return choose


def test_the_table_on_the_host(on_host: Callable[[Any], Any]) -> None:
    assert_chosen(on_host(inputs_of(DIRECTION_CASES)))


def test_more_messages_never_turn_a_pull_into_a_push(on_host: Callable[[Any], Any]) -> None:
    rows = [DirectionCase("", "push", n, retired_edges=300) for n in range(200)]
    chosen = on_host(inputs_of(rows)).tolist()
    assert chosen == sorted(chosen, reverse=True)
    assert set(chosen) == {0, 1}


def cubin(arch: str) -> bytes:
    pytest.importorskip("cuda.core")
    from sigps.device.linking import compile_source, link_modules

    return link_modules([compile_source(SOURCE, "choose.cu", arch, {}, FOLDER)], arch)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_rule_links_for_a_gpu(arch: str) -> None:
    assert b"choose" in cubin(arch)


@pytest.mark.gpu
def test_the_table_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    from sigps.device.cuda import Module, find_gpu

    kernel = Module(cubin(find_gpu().arch)).kernel("choose")
    inputs = cupy.asarray(inputs_of(DIRECTION_CASES).view(np.uint8))
    chosen = cupy.full(len(DIRECTION_CASES), 9, dtype=cupy.uint32)
    kernel.launch(1, 32, (inputs, chosen, np.uint32(chosen.size)))
    assert_chosen(cupy.asnumpy(chosen))
