"""Whether there is a GPU, and what is said where there is none: decided by what is installed and what CUDA says."""

from __future__ import annotations

import ctypes
import importlib.util
import struct
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sigps import Graph, run
from sigps.apps import BFS
from sigps.device import cuda
from sigps.errors import DeviceError


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    cuda.what_is_missing.cache_clear()
    yield
    cuda.what_is_missing.cache_clear()


class CUDARuntimeError(RuntimeError):
    """What CuPy raises."""


def pretend(
    monkeypatch: pytest.MonkeyPatch, absent: set[str], num_gpus: int | None = 0, *, has_driver: bool = True
) -> None:
    """Let packages be installed but for some, and CuPy see so many GPUs; None: it cannot ask."""

    def count() -> int:
        if num_gpus is None:
            raise CUDARuntimeError("cudaErrorInsufficientDriver")
        return num_gpus

    real = importlib.util.find_spec
    packages = {"cupy", "cuda"}

    def find_spec(name: str, *rest: Any) -> Any:
        return (None if name in absent else SimpleNamespace()) if name in packages else real(name, *rest)

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(cuda, "_has_driver", lambda: has_driver)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))


@pytest.mark.parametrize(
    ("absent", "num_gpus", "says"),
    [
        ({"cupy", "cuda"}, 0, "cupy-cuda13x, cuda-core not installed"),
        ({"cupy"}, 1, "cupy-cuda13x not installed (pip install 'sigps[cu13]', or [cu12])"),
        ({"cuda"}, 1, "cuda-core not installed"),
        (set(), 0, "no GPU is found"),
        (set(), None, "no GPU is found (cudaErrorInsufficientDriver)"),
    ],
)
def test_what_is_missing_is_named(
    absent: set[str], num_gpus: int | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, absent, num_gpus)
    assert cuda.what_is_missing()
    for refused in (cuda.find_gpu, lambda: run(BFS(source=0), Graph.from_edges([0], [1]), device="cuda")):
        with pytest.raises(DeviceError) as caught:
            refused()
        assert f"device='cuda' cannot be used: {says}" in str(caught.value)
        assert "device='cpu' runs everywhere" in str(caught.value)


def test_with_everything_there_it_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, set(), 1)
    assert not cuda.what_is_missing()


def test_without_a_driver_cupy_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, set(), 1, has_driver=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert (
        cuda.what_is_missing() == "no GPU is found (there is no NVIDIA driver: libcuda.so.1 cannot be loaded)"
    )


def test_a_launch_gets_pointers_to_what_its_parameters_are(monkeypatch: pytest.MonkeyPatch) -> None:
    array_type = type("ndarray", (), {"data": SimpleNamespace(ptr=0x7F00_0000_1234)})
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=array_type))
    structure = np.array((7, 0, 2.5), dtype=[("n", "u4"), ("zeros", "u8"), ("x", "f8")])
    given = [np.uint32(5), array_type(), structure, np.float32(-1.5)]
    launched: list[Any] = []

    def start(*numbers: Any) -> None:
        *_, pointers, _ = numbers
        addresses = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_uint64))[: len(given)]
        sizes = (4, 8, structure.nbytes, 4)
        launched.extend(ctypes.string_at(a, size) for a, size in zip(addresses, sizes, strict=True))

    kernel = object.__new__(cuda.Kernel)
    kernel._address = 1
    driver = SimpleNamespace(launchKernel=start, CUDADriverError=RuntimeError)
    known = SimpleNamespace(driver=driver, get_current_stream=lambda: SimpleNamespace(ptr=0))
    monkeypatch.setattr(sys.modules["cupy"], "cuda", known, raising=False)
    kernel.launch(1, 32, given)
    number, address, found, x = launched
    assert (int.from_bytes(number, sys.byteorder), int.from_bytes(address, sys.byteorder)) == (
        5,
        0x7F00_0000_1234,
    )
    assert np.frombuffer(found, structure.dtype)[0] == structure
    assert struct.unpack("f", x) == (-1.5,)


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_launch_that_fails_says_what_the_driver_says(
    cooperative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = type("CUDADriverError", (RuntimeError,), {})

    def fail(*given: Any) -> None:
        raise refused("CUDA_ERROR_INVALID_VALUE: invalid argument")

    driver = SimpleNamespace(launchKernel=fail, launchCooperativeKernel=fail, CUDADriverError=refused)
    known = SimpleNamespace(driver=driver, get_current_stream=lambda: SimpleNamespace(ptr=0))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=type("ndarray", (), {}), cuda=known))
    kernel = object.__new__(cuda.Kernel)
    kernel._address = 1
    with pytest.raises(DeviceError, match="the CUDA driver reports CUDA_ERROR_INVALID_VALUE"):
        kernel.launch(1, 32, [np.uint32(1)], cooperative=cooperative)


@pytest.mark.parametrize(
    ("wanted", "on_device", "fits", "frees"),
    [
        (30, 1000, True, False),
        (31, 1000, True, True),
        (110, 1000, True, True),
        (111, 1000, False, True),
        (30, 20, True, True),
        (61, 20, False, True),
    ],
)
def test_under_a_limit_what_cupy_keeps_goes_only_where_it_must(
    wanted: int, on_device: int, fits: bool, frees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a limit of 140 bytes 10 are beside the pool, which has 20 in use and 40 more, from which arrays may be cut."""
    state = {"kept": 40, "device": on_device}

    def free_all_blocks() -> None:
        state["device"] += state["kept"]
        state["kept"] = 0

    pool = SimpleNamespace(
        free_bytes=lambda: state["kept"],
        total_bytes=lambda: 20 + state["kept"],
        free_all_blocks=free_all_blocks,
    )
    runtime = SimpleNamespace(memGetInfo=lambda: (state["device"], 2000))
    cupy = SimpleNamespace(get_default_memory_pool=lambda: pool, cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cuda, "_limit", 140)
    monkeypatch.setattr(cuda, "_beside_pool", 10)
    assert cuda.fits(wanted) == fits
    assert (state["kept"] == 0) == frees
