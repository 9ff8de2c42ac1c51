"""What GPUs do between supersteps, by itself: how long the inter-GPU barrier takes, and how fast records cross.

The kernels are those of a run (`kernels/lease.cu`), with `crossing.cu` behind them; they work on a run's own memory,
between its first supersteps and its last. The memory that peers write to is what copies are timed on, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import sigps
from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.cuda import Module
from sigps.device.linking import compile_source, link_modules
from sigps.engine.gpu.peer_buffers import peer_buffers
from sigps.engine.gpu.peers import GpuPeerEngine
from sigps.engine.gpu.variant import PEERS
from sigps.group import Group
from sigps.kernels import cuda as kernels

__all__ = ["time_crossing"]

BARRIERS, SWEEPS, COPIES = 2000, 20, 20


def time_crossing(program: sigps.Vertex, graph: sigps.Graph, group: Group) -> dict[str, float]:
    """Run a program that has every vertex send in superstep 1, and time what crosses after that. Collective.

    Returns:
        `barrier`: seconds of one inter-GPU barrier. `crossing`: seconds in which the records of a dense superstep
        reach all ghosts. `published` and `copied`: bytes a second that leave the slowest GPU then, and as plain
        copies to the next GPU, all GPUs at a time.
    """
    found: dict[str, float] = {}
    with _between_supersteps(found, group):
        sigps.run(program, graph, device="cuda", precision="single", gather=False, transport="peer")
    return found


@contextmanager
def _between_supersteps(found: dict[str, float], group: Group) -> Iterator[None]:
    lease = GpuPeerEngine.lease

    def lease_and_time(engine: GpuPeerEngine, num_supersteps: int) -> Any:
        outcome = lease(engine, 2)
        assert not outcome.ended
        found.update(_timed(engine, group))
        rest = lease(engine, num_supersteps - 2)
        outcome.ended = rest.ended
        outcome.stats.extend(rest.stats)
        return outcome

    with mock.patch.object(GpuPeerEngine, "lease", lease_and_time):
        yield


def link_crossing(compiled: CudaProgram, shape: dict[str, str], arch: str) -> bytes:
    """Return the kernels of a lease between peers with those of `crossing.cu`, linked with a program's functions."""
    folder = Path(kernels.__file__).parent
    source = (folder / "lease.cu").read_text() + Path(__file__).with_name("crossing.cu").read_text()
    macros = {**compiled.defines, **shape, "SIGPS_CLUSTER_THREADS": "0", **PEERS}
    module = compile_source(source, "crossing.cu", arch, macros, folder)
    return link_modules([module, *compiled.functions], arch)


def _timed(engine: GpuPeerEngine, group: Group) -> dict[str, float]:
    import cupy

    variant, gpu, lease = engine._variant, engine._gpu, engine._lease
    module = Module(link_crossing(variant.compiled, variant.shape.macros(), gpu.arch))
    time = cupy.zeros(2, dtype=cupy.uint64)
    blocks = gpu.num_sms * variant.blocks_per_sm

    def launched(name: str, count: int) -> tuple[float, int]:
        kernel = module.kernel(name)
        for _ in range(2):  # the first is not counted
            group.barrier()
            given = (lease, np.uint32(count), time)
            kernel.launch(blocks, variant.shape.threads, given, cooperative=True)
            cupy.cuda.get_current_stream().synchronize()
        nanoseconds, published = time.tolist()
        return max(group.all_gather(nanoseconds * 1e-9 / count)), published // count

    barrier, _ = launched("run_barriers", BARRIERS)
    seconds, num_published = launched("run_publishing", SWEEPS)
    num_bytes = num_published * variant.record_bytes + int(sum(h.size for h in engine._subgraph.halo)) / 8
    return {
        "barrier": barrier,
        "crossing": seconds,
        "published": min(group.all_gather(num_bytes / seconds)),
        "copied": min(group.all_gather(_copied(engine, group))),
    }


def _copied(engine: GpuPeerEngine, group: Group) -> float:
    """Return bytes a second of copies into the next rank's memory: of a part that its run has no use for now."""
    import cupy

    buffers = peer_buffers(engine._exchange)
    memory, parity = engine._memory, engine.superstep & 1
    name = f"records{1 - parity}"  # what is written next
    own = memory.array(name, np.uint8)
    size = min(group.all_gather(int(own.nbytes)))
    offsets = group.all_gather(int(memory.offset(name)))
    peer = (group.rank + 1) % group.size
    stream, runtime = cupy.cuda.get_current_stream(), cupy.cuda.runtime
    events = [cupy.cuda.Event(), cupy.cuda.Event()]
    for _ in range(2):
        group.barrier()
        events[0].record()
        for _ in range(COPIES):
            to = buffers.addresses[peer] + offsets[peer]
            runtime.memcpyAsync(to, own.data.ptr, size, runtime.memcpyDeviceToDevice, stream.ptr)
        events[1].record()
        stream.synchronize()
    return size * COPIES / (cupy.cuda.get_elapsed_time(*events) * 1e-3)
