"""On the way to a first answer nothing is done for which CuPy would compile a kernel.

The stand-in for a GPU refuses all but what is a copy, a fill of bytes, an allocation, a view, or a sort, for which CuPy
brings its kernels compiled.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import host_gpu
import numpy as np
import pytest

import sigps
from sigps.apps import BFS, SSSP, WCC, KHop, OutDegree, PageRank
from sigps.model.vertex import Vertex

_METHODS = (
    *("astype", "copy", "fill", "sum", "max", "min", "any", "all", "cumsum", "take", "repeat", "nonzero"),
    *("__setitem__", "__array_ufunc__", "__array_function__"),
)


@pytest.fixture
def cupy_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    whole: Any = sys.modules["cupy"]
    types = {name: getattr(np, name) for name in ("uint8", "uint32", "uint64", "int64", "bool_")}

    def asarray(values: Any, dtype: Any = None) -> Any:
        assert dtype is None or np.dtype(dtype) == np.asarray(values).dtype
        return whole.asarray(values)

    def asnumpy(values: Any, stream: Any = None) -> Any:
        assert values.flags.c_contiguous
        return whole.asnumpy(values)

    bare = SimpleNamespace(
        **types,
        empty=whole.empty,
        zeros=whole.zeros,
        argsort=lambda keys, kind: np.argsort(keys.view(np.ndarray), kind=kind).view(host_gpu.Array),
        ndarray=whole.ndarray,
        asarray=asarray,
        asnumpy=asnumpy,
        cuda=whole.cuda,
        get_default_memory_pool=whole.get_default_memory_pool,
    )
    monkeypatch.setitem(sys.modules, "cupy", bare)
    for name in _METHODS:
        monkeypatch.setattr(host_gpu.Array, name, _refuse(name))
    get = host_gpu.Array.__getitem__

    def get_slice(array: Any, index: Any) -> Any:
        assert isinstance(index, (slice, int)), "a selection by an array is a kernel"
        return get(array, index)

    monkeypatch.setattr(host_gpu.Array, "__getitem__", get_slice)


def _refuse(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"CuPy compiles a kernel for {name}")

    return refuse


PROGRAMS = [PageRank(iterations=3), BFS(source=0), SSSP(source=0), WCC(), KHop(source=0), OutDegree()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: type(program).__name__)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.usefixtures("cupy_compiles_nothing")
def test_cupy_compiles_nothing_before_an_answer(program: Vertex, directed: bool) -> None:
    draw = np.random.default_rng(3)
    sources, targets = draw.integers(0, 60, (2, 300))
    weights = draw.integers(1, 9, 300).astype(float)
    graph = sigps.Graph.from_edges(sources, targets, weights=weights, directed=directed)
    found = sigps.run(program, graph, device="cuda", asynchronous=False)
    expected = sigps.run(program, graph, device="python")
    for field in expected.fields:
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-12)


@pytest.mark.usefixtures("cupy_compiles_nothing")
def test_the_stand_in_refuses_what_cupy_compiles() -> None:
    import cupy

    array = cupy.asarray(np.arange(5))
    for attempt in (
        lambda: array + 1,
        lambda: array.sum(),
        lambda: array.astype(float),
        lambda: np.sum(array),
    ):
        with pytest.raises(AssertionError, match="CuPy compiles"):
            attempt()
    with pytest.raises(AssertionError, match="selection"):
        array[np.array([1])]
    with pytest.raises(AssertionError, match="CuPy compiles"):
        array[:2] = 0
