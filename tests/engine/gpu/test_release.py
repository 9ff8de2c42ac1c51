"""Runs in priority order on the stand-in for a GPU: what is released, how often, and that results stay the same."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
    pytest.skip("cuda-core is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)

import host_gpu

import sigps
from sigps import Graph
from sigps.apps import WCC
from sigps.engine.gpu import priority
from sigps.kernels.cpu.arguments import RETIRED


class Buckets:
    """`buckets.cu` in NumPy, which counts its launches; it takes the least value."""

    def __init__(self) -> None:
        self.finds = self.releases = 0

    def kernels(self, gpu: Any, value_type: str, takes_min: bool) -> tuple[Any, Any]:
        assert takes_min
        return _Launched(self._find), _Launched(self._release)

    def _find(self, waiting: Any, status: Any, values: Any, degrees: Any, n: Any, found: Any) -> None:
        self.finds += 1
        bits = _bits(waiting, int(n)) & (host_gpu._plain(status)[: int(n)] != RETIRED)
        _set_bits(waiting, bits)
        into = host_gpu._plain(found)
        into[0] = host_gpu._plain(degrees)[: int(n)][bits].sum()
        if bits.any():
            into[1:2].view(np.int64)[0] = host_gpu._plain(values)[bits].min()

    def _release(self, *given: Any) -> None:
        waiting, values, degrees, n, takes_all, best, records, sent, _, found = given
        self.releases += 1
        bits = _bits(waiting, int(n))
        goes = bits if takes_all else bits & (host_gpu._plain(values) == best)
        _set_bits(waiting, bits & ~goes)
        host_gpu._plain(sent)[:] = 0
        _set_bits(sent, goes)
        host_gpu._plain(records)[: int(n)][goes] = host_gpu._plain(values)[goes]
        of_senders = host_gpu._plain(degrees)[: int(n)][goes]
        host_gpu._plain(found)[2:4] = np.count_nonzero(of_senders), of_senders.sum()


class _Launched:
    def __init__(self, run: Any) -> None:
        self._run = run

    def launch(self, blocks: int, threads: int, parameters: Any) -> None:
        self._run(*parameters)


def _bits(words: Any, count: int) -> Any:
    return np.unpackbits(host_gpu._plain(words).view(np.uint8), bitorder="little")[:count].astype(bool)


def _set_bits(words: Any, bits: Any) -> None:
    raw = host_gpu._plain(words).view(np.uint8)
    packed = np.packbits(bits, bitorder="little")
    raw[: packed.size] = packed


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> Buckets:
    host_gpu.use_host_as_gpu(monkeypatch)
    made = Buckets()
    monkeypatch.setattr(priority, "_kernels", made.kernels)
    return made


def stars(num_stars: int, size: int) -> Graph:
    """Hubs with leaves: no mesh."""
    hubs = np.arange(num_stars) * (size + 1)
    leaves = hubs[:, None] + np.arange(1, size + 1)
    return Graph.from_edges(np.repeat(hubs, size), leaves.ravel(), directed=False)


@pytest.mark.parametrize(("num_stars", "releases"), [(1, 1), (2, 2)])
def test_a_run_ends_when_nothing_waits(buckets: Buckets, num_stars: int, releases: int) -> None:
    graph = stars(num_stars, 300)
    found = sigps.run(WCC(), graph, device="cuda")
    assert found["component"].tolist() == sigps.run(WCC(), graph, device="python")["component"].tolist()
    assert found.reason == "converged"
    assert (buckets.finds, buckets.releases) == (releases + 1, releases)


def test_the_rest_is_released_at_once(buckets: Buckets) -> None:
    graph = stars(20, 70)
    found = sigps.run(WCC(), graph, device="cuda")
    assert found["component"].tolist() == sigps.run(WCC(), graph, device="python")["component"].tolist()
    assert buckets.releases < 20


def test_nothing_is_released_where_nobody_sent(buckets: Buckets) -> None:
    graph = Graph.from_edges([], [], vertices=range(5), directed=False)
    found = sigps.run(WCC(), graph, device="cuda")
    assert found["component"].tolist() == [0, 1, 2, 3, 4]
    assert (buckets.finds, buckets.releases) == (1, 0)
