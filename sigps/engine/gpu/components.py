"""The best value of each component found at once on a GPU; `engine/cpu/components.py` finds it on CPU cores."""

from __future__ import annotations

import functools
import time
from typing import Any

from sigps.account import spent_on
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.stats import AT_ONCE, SuperstepStats

__all__ = ["GpuComponents", "component_macros", "gpu_components", "link_components_ahead"]

_THREADS = 256


def gpu_components(program: VertexProgram, graph: GpuGraph, gpu: Gpu) -> GpuComponents | None:
    """Return what finds components in a run on one GPU; None where it does not pay, or memory is short.

    Args:
        program: One that has a priority-order form.
        graph: The graph.
        gpu: The GPU; the current one.
    """
    if not (graph.is_symmetric and graph.numbering.subgraph.is_mesh and fits(4 * graph.num_owned)):
        return None
    return GpuComponents(graph, gpu, takes_min=program.slots[0].op == "min")


class GpuComponents:
    """Runs all supersteps after the first at once.

    Args:
        graph: The graph, whose edges go both ways.
        gpu: The GPU; the current one.
        takes_min: Whether the best value is the least, and not the greatest.
    """

    def __init__(self, graph: GpuGraph, gpu: Gpu, *, takes_min: bool) -> None:
        self._graph, self._gpu, self._takes_min = graph, gpu, takes_min

    def run(self, values: Any) -> SuperstepStats:
        """Give each vertex the best value of its component. Waits for the device.

        Args:
            values: [num_owned], integers.
        """
        import cupy

        began, graph = time.perf_counter(), self._graph
        parents, changed = cupy.empty(values.size, dtype=cupy.uint32), cupy.zeros(1, dtype=cupy.uint64)
        edges = graph.incoming.structure()
        kernels = _kernels(self._gpu, values.dtype.name, self._takes_min)
        blocks = max(1, min(self._gpu.num_sms * 16, -(-values.size // _THREADS)))
        kernels["begin_trees_thread_mapped"].launch(blocks, _THREADS, (edges, values, parents))
        kernels["join_trees_thread_mapped"].launch(blocks, _THREADS, (edges, values, parents))
        given = edges["num_rows"], parents, values, changed
        kernels["take_roots_thread_mapped"].launch(blocks, _THREADS, given)
        counts = int(cupy.asnumpy(changed)[0]), graph.numbering.subgraph.num_edges
        return SuperstepStats(1, AT_ONCE, *counts, 0, time.perf_counter() - began, 1.0)


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, value: str, takes_min: bool) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("components", gpu.arch, component_macros(value, takes_min)))
    names = "begin_trees_thread_mapped", "join_trees_thread_mapped", "take_roots_thread_mapped"
    return {name: module.kernel(name) for name in names}


@functools.cache
def link_components_ahead(gpu: Gpu, value: str, takes_min: bool) -> None:
    """Begin to link what finds components, for a type of NumPy's; once a process."""
    from sigps.device.linking import link_ahead

    link_ahead("components", gpu.arch, component_macros(value, takes_min))


def component_macros(value: str, takes_min: bool) -> dict[str, str]:
    """Return what `kernels/cuda/components.cu` is compiled with, for a type of NumPy's."""
    return {"SIGPS_VALUE": f"{value}_t", "SIGPS_TAKES_MIN": str(int(takes_min))}
