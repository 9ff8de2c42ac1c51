"""Graphs from arrays that live on a GPU, and what is said where they cannot be copied from it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sigps import Graph, GraphError, run
from sigps.apps import SSSP
from sigps.graph.user_arrays import on_host

SOURCES, TARGETS, WEIGHTS = [5, 5, 7], [7, 9, 9], [1.0, 8.0, 2.5]


class OnGpu:
    """What a library without CuPy hands over."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "<i8", "data": (1 << 40, False), "version": 3}


class Tensor:
    """An array that speaks nothing but DLPack; of the memory that it says."""

    def __init__(self, array: Any, memory: int | None = None) -> None:
        self._array, self._memory = array, memory

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        memory, ordinal = self._array.__dlpack_device__()
        return self._memory or memory, ordinal


def a_graph(made: Callable[[Any], Any] = np.asarray, **options: Any) -> Graph:
    sources, targets, weights = (made(np.array(values)) for values in (SOURCES, TARGETS, WEIGHTS))
    columns = {"cost": made(np.arange(3, dtype=np.int32))}
    vertices = made(np.array([11, 3]))
    return Graph.from_edges(sources, targets, weights, vertices=vertices, columns=columns, **options)


def assert_same_graph(found: Graph, expected: Graph) -> None:
    assert found.ids.to_oids(np.arange(found.num_vertices)).tolist() == [3, 5, 7, 9, 11]
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    np.testing.assert_array_equal(found.targets, expected.targets)
    assert found.columns.keys() == expected.columns.keys()
    for name, column in expected.columns.items():
        assert type(found.columns[name]) is np.ndarray
        assert found.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(found.columns[name], column)


# --- without a GPU ------------------------------------------------------------


@pytest.mark.parametrize("values", [SOURCES, tuple(SOURCES), np.array(SOURCES), np.array(["a"]), range(3)])
def test_what_is_on_the_host_stays_as_it_is(values: Any) -> None:
    assert on_host(values, "sources") is values


def test_what_numpy_understands_is_left_to_it() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(SOURCES)  # of the host by DLPack too
    assert on_host(column, "sources") is column
    assert_same_graph(a_graph(pyarrow.array), a_graph())


def test_tensors_of_the_host_need_no_copy() -> None:
    array = np.array(SOURCES)
    assert np.shares_memory(on_host(Tensor(array), "sources"), array)
    assert_same_graph(a_graph(Tensor), a_graph())


@pytest.mark.parametrize("array", [OnGpu(), Tensor(np.array(SOURCES), 2), Tensor(np.array(SOURCES), 13)])
@pytest.mark.parametrize("where", ["sources", "targets", "weight", "cost", "vertices"])
def test_without_cupy_the_error_says_what_to_do(
    array: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    given = dict(zip(("sources", "targets", "weight", "cost", "vertices"), [SOURCES] * 5, strict=True))
    given[where] = array
    sources, targets, weight, cost, vertices = given.values()
    with pytest.raises(GraphError) as caught:
        Graph.from_edges(sources, targets, weight, columns={"cost": cost}, vertices=vertices)
    name = type(array).__name__
    assert str(caught.value).startswith(
        f"{where} is a {__name__}.{name} on a GPU, and CuPy, which reads it there, cannot be"
    )
    assert "pip install 'sigps[cu13]', or [cu12]; or give NumPy arrays" in str(caught.value)


# --- on a GPU ------------------------------------------------------------------


def of_cupy(array: Any) -> Any:
    import cupy

    return cupy.asarray(array)


def of_cupy_strided(array: Any) -> Any:
    import cupy

    return cupy.asarray(np.repeat(array, 2))[::2]


def of_numba(array: Any) -> Any:
    cuda = pytest.importorskip("numba.cuda", reason="needs numba-cuda: pip install numba-cuda")
    return cuda.to_device(array)


def of_dlpack(array: Any) -> Any:
    return Tensor(of_cupy(array))


def of_torch(array: Any) -> Any:
    torch = pytest.importorskip("torch", reason="needs PyTorch with CUDA: pip install torch")
    return torch.as_tensor(array, device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("made", [of_cupy, of_cupy_strided, of_numba, of_dlpack, of_torch])
def test_arrays_on_a_gpu(made: Callable[[Any], Any]) -> None:
    for options in ({}, {"directed": False}, {"local": True}):
        assert_same_graph(a_graph(made, **options), a_graph(**options))
    assert run(SSSP(source=5), a_graph(made), device="cuda")["distance"].tolist() == [
        np.inf,
        0,
        1,
        3.5,
        np.inf,
    ]


@pytest.mark.gpu
def test_results_on_a_gpu_make_a_graph() -> None:
    """Such as the tree of a search, without a line about where it lies."""
    import cupy

    result = run(SSSP(source=5), a_graph(), device="cuda")
    parents = result.to_cupy("parent")
    reached = cupy.flatnonzero(parents != np.iinfo(parents.dtype).min)
    tree = Graph.from_edges(parents[reached], cupy.asarray(result.ids)[reached], self_loops="drop")
    assert (tree.num_edges, tree.ids.to_oids([0, 1, 2]).tolist()) == (2, [5, 7, 9])
