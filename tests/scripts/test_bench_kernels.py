"""The benchmarks' own kernels link with those of a run, as these are now."""

from __future__ import annotations

import importlib

import pytest
from places import REPOSITORY

from sigps.apps import BFS, PageRank
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.launch import WIDE

ARCH = "sm_90"


@pytest.fixture
def bench(monkeypatch):
    pytest.importorskip("cuda.core")
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts" / "bench"))
    return importlib.import_module


def compiled(program):
    return compile_for_cuda(analyse(program, "single"), {}, narrow_ids=True, arch=ARCH)


def test_what_crosses_between_gpus(bench):
    cubin = bench("crossing").link_crossing(compiled(PageRank()), WIDE.macros(), ARCH)
    assert b"run_barriers" in cubin
    assert b"run_publishing" in cubin


@pytest.mark.parametrize("program", [BFS(source=0), PageRank()])
def test_functions_by_hand(bench, program):
    by_hand = bench("by_hand").with_functions_by_hand(compiled(program), ARCH)
    assert b"run_lease" in link(by_hand, "lease", ARCH, WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"})
