"""Streams on a GPU without one: the kernels that change rows and go on run on the host, by their text."""

from __future__ import annotations

from typing import Any

import host_gpu
import pytest
from host_kernels import host_kernels
from host_lease import program_kernels
from host_peers import use_host_as_peers

from sigps.compiler.cuda.compile import CudaProgram
from sigps.engine.gpu import arrivals, arrivals_ranks, following, live_ranks, measures, peers, triangles
from sigps.engine.gpu.simple_rows import Counting

__all__ = ["use_host_for_streams"]


def use_host_for_streams(monkeypatch: pytest.MonkeyPatch, ranks: int = 1) -> None:
    """Let streams with `device="cuda"` run in this process, on so many ranks that are threads."""
    if ranks > 1:
        use_host_as_peers(monkeypatch, ranks)
        monkeypatch.setattr(peers, "_LONGEST_WAIT", _LONGEST_WAIT)
    else:
        host_gpu.use_host_as_gpu(monkeypatch)
    for module, name, file, macros in (
        (following, "_kernels", "live", following.live_macros),
        (arrivals, "_settling_kernels", "arrivals", arrivals.arrival_macros),
        (measures, "_counting_kernels", "changed_links", measures.link_macros),
    ):
        make: Any = lambda gpu, *of, file=file, macros=macros: host_kernels(file, macros(*of))  # noqa: E731
        monkeypatch.setattr(module, name, make)
    monkeypatch.setattr(live_ranks, "_kernels", _kernels_of_ranks)
    monkeypatch.setattr(arrivals_ranks, "_kernels", _arrivals_of_ranks)
    monkeypatch.setattr(arrivals, "_computing_kernel", _computing_kernel)
    monkeypatch.setattr(triangles, "_kernels", _triangle_kernels)


_LONGEST_WAIT = 60.0
"""Seconds for another rank's kernel, which may have ended by an error of the test."""


def _kernels_of_ranks(gpu: Any, *given: Any) -> Any:
    return host_kernels("live_ranks", following.live_macros(*given, 0), meet=True)


def _arrivals_of_ranks(gpu: Any, *given: Any) -> Any:
    return host_kernels("arrivals_ranks", arrivals.arrival_macros(*given), meet=True)


def _computing_kernel(compiled: CudaProgram, gpu: Any) -> Any:
    used, _ = compiled.columns
    types = dict(zip(compiled.program.edge_columns, used, strict=True))
    narrow = compiled.defines["SIGPS_ID"] == "int32_t"
    return program_kernels("recompute", compiled.program, types, narrow=narrow)["compute_again_warp_mapped"]


def _triangle_kernels(gpu: Any, directed: bool, counting: Counting) -> Any:
    kernels = host_kernels("triangles", counting.macros(directed=directed))
    of = ("list_arcs_warp_mapped", "copy_rows_warp_mapped", "count_block_mapped", "count_warp_mapped")
    return triangles._Kernels(*(kernels[name] for name in of), 1)
