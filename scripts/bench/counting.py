"""Time schedules of the kernels that count links among neighbours (`sigps/kernels/triangles.cu`) on one GPU.

    python scripts/bench/counting.py --scales 18,22,24
    python scripts/bench/counting.py --scales 22 --repeats 3 --only default,lanes_32

Prints a table: milliseconds to make the graph simple, to count, and both, medians with the device synchronised before
and after. The counts of all schedules must be the same, and on graphs up to kron-20 those of the CPU engine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from measuring import check, median_and_best, run

import sigps
from sigps.apps import Triangles
from sigps.device.cuda import Gpu, find_gpu
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import triangles as gpu_triangles
from sigps.engine.gpu.graph import GpuGraph, graph_on_gpu
from sigps.engine.gpu.simple_rows import Counting

SCHEDULES = {
    "default": Counting(),
    "lanes_4": Counting(lanes=4),
    "lanes_16": Counting(lanes=16),
    "lanes_16_loads_2": Counting(lanes=16, loads=2),
    "lanes_32": Counting(lanes=32, loads=1),
    "lanes_32_loads_2": Counting(lanes=32, loads=2),
    "loads_2": Counting(loads=2),
    "loads_8": Counting(loads=8, blocks_per_sm=5),
    "registers_40": Counting(blocks_per_sm=6),
    "threads_128": Counting(threads=128, blocks_per_sm=10),
    "threads_512": Counting(threads=512, blocks_per_sm=4),
    "bitmap_32768": Counting(bitmap=1 << 15),
    "bitmap_131072": Counting(bitmap=1 << 17, blocks_per_sm=6),
    "chunk_512": Counting(chunk=512),
    "chunk_4096": Counting(chunk=4096),
    "block_mapped_32": Counting(block_mapped=32),
    "block_mapped_256": Counting(block_mapped=256),
}
"""Each differs from the first in what its name tells, and in the blocks that there is room for."""

CHECKED_SCALE = 20


def median_ms(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median milliseconds of a call, and what it returns."""
    return median_and_best(work, repeats)[0] * 1e3, work()


def on_gpu(graph: sigps.Graph, gpu: Gpu) -> GpuGraph:
    """Return a graph's edges on the GPU, which a run brings there."""
    run(Triangles(), graph)
    ((_, subgraph),) = graph.derived("partitions", dict).values()
    return graph_on_gpu(subgraph, gpu, sorts_rows=True)


def forget_counts(graph: sigps.Graph) -> None:
    """Let the next run count anew, as if it were the first."""
    for _, subgraph in graph.derived("partitions", dict).values():
        for there in gpu_graph._on_gpu.get(subgraph, {}).values():
            there.forget("around")


def compare(scale: int, names: list[str], repeats: int) -> None:
    """Time schedules on a Kronecker graph."""
    graph, gpu = sigps.generate("rmat", scale=scale), find_gpu()
    there = on_gpu(graph, gpu)
    expected = None
    if scale <= CHECKED_SCALE:
        expected = sigps.run(Triangles(), graph, device="cpu")["triangles"]
    for name in names:
        counting = SCHEDULES[name]
        edges, numbers = gpu_triangles._edges_of(there, directed=False)
        simple_ms, rows = median_ms(
            lambda e=edges, n=numbers, c=counting: gpu_triangles._made_simple(e, n, gpu, c),  # type: ignore[misc]
            repeats,
        )
        count_ms, links = median_ms(
            lambda r=rows, c=counting: gpu_triangles._links(r, gpu, c, directed=False),  # type: ignore[misc]
            repeats,
        )
        blocks = gpu_triangles._kernels(gpu, False, counting).blocks_per_sm
        found = cupy.asnumpy(links[there.numbering.lids])
        expected = found if expected is None else expected
        check(np.array_equal(found, expected), f"the counts of {name} are others")
        total = simple_ms + count_ms
        print(
            f"kron-{scale:<4} {name:<18} {simple_ms:9.2f} + {count_ms:9.2f} = {total:9.2f} ms  {blocks} blocks",
            flush=True,
        )


def main() -> None:
    """Run the comparison that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", default="18,22", help="as in 18,22,24")
    options.add_argument("--only", default=",".join(SCHEDULES), help="schedules, with commas between them")
    options.add_argument("--repeats", type=int, default=5)
    given = options.parse_args()
    for scale in map(int, given.scales.split(",")):
        compare(scale, given.only.split(","), given.repeats)


if __name__ == "__main__":
    main()
