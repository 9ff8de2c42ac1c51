"""What `device="auto"` comes to for a program on a graph, on this machine and with these ranks."""

from __future__ import annotations

import logging
import threading
from typing import Any, Literal

import numpy as np

from sigps.engine.device_choice import reason_against_gpu
from sigps.engine.direction import Schedule
from sigps.errors import CompileError
from sigps.graph.graph import Graph
from sigps.group import Group

__all__ = ["Device", "choose_device", "column_types", "compiling"]

log = logging.getLogger(__name__)

Device = Literal["python", "cpu", "cuda"]

compiling = threading.Lock()  # so that ranks that are threads compile a program once


def choose_device(
    device: str,
    prepared: Any,
    graph: Graph,
    *,
    deterministic: bool = False,
    resumes: bool = False,
    schedule: Schedule = "vertex",
    rank_on_host: int = 0,
) -> Device:
    """Return the device to run on; what `"auto"` is, and why, is logged once. Collective.

    CUDA's libraries are loaded only where nothing else speaks against a GPU.

    Args:
        device: What was asked for; `check_device` has seen it.
        prepared: What `check_program` made of the program.
        graph: The graph that it runs on.
        deterministic: As in `run`.
        resumes: Whether the run goes on from a state log, which a CPU may have written.
        schedule: As in `run`.
        rank_on_host: This rank's number among those of its host.
    """
    if device != "auto":
        return device  # type: ignore[return-value]
    from sigps.device.cuda import what_is_missing
    from sigps.engine.gpu.engine import find_gpu_obstacle

    known: dict[str, Any] = {
        "num_edges": graph.num_edges // graph.group.size,
        "obstacle": find_gpu_obstacle(prepared, deterministic, resumes=resumes),
    }
    against = (
        reason_against_gpu(**known)
        or (_SLOWER_ON_GPUS if prepared.reads_neighbors else "")
        or reason_against_gpu(**known, missing=what_is_missing())
        or reason_against_gpu(**known, **_memory(prepared, graph, rank_on_host))
        or _why_not_compiled(prepared, graph, rank_on_host, schedule)
    )
    if graph.group.size > 1:
        against = _against_gpus(against, prepared, graph.group, rank_on_host)
    _log_once(f"device: cpu ({against})" if against else "device: cuda (the graph is large enough to pay)")
    return "cpu" if against else "cuda"


_SLOWER_ON_GPUS = "a GPU takes longer for common_neighbors() where some vertices have very many edges"


def _against_gpus(against: str, prepared: Any, group: Group, rank_on_host: int) -> str:
    """Tell what speaks against a GPU for each rank, where this rank's reason is `against`. Collective."""
    from sigps.device.cuda import find_gpu
    from sigps.system.transport import (
        choose_transport,
        gpu_facts,
        needs_hosts,
        reason_against_nccl,
        reason_against_peers,
    )

    facts = {} if against else gpu_facts(find_gpu(rank_on_host))
    ranks = group.all_gather({"against": against, **facts})
    reasons = [rank["against"] for rank in ranks if rank["against"]]
    by_hosts = needs_hosts(prepared)
    if reasons or choose_transport(ranks, "auto", by_hosts=by_hosts) != "mpi":
        return next(iter(reasons), "")
    return reason_against_nccl(ranks) if by_hosts else reason_against_peers(ranks)


def _memory(prepared: Any, graph: Graph, rank_on_host: int) -> dict[str, Any]:
    """Compare what a graph, and what is kept on its edges, take on this rank's GPU with what that has."""
    from sigps.device.cuda import find_gpu
    from sigps.engine.gpu import memory_plan as gpu_plan
    from sigps.engine.gpu.simple_rows import bytes_while_counted

    find_gpu(rank_on_host)
    columns, size = len(graph.columns), graph.group.size
    directions = 2 if graph.directed or size > 1 else 1
    share = graph.num_vertices, graph.num_edges * directions // size, columns
    needed = gpu_plan.bytes_while_laid_out(*share)
    if any(field.measure for field in prepared.states):
        num_keys = graph.num_edges * (2 if graph.directed else 1)
        copied = 4 * graph.num_edges if size > 1 else 0
        counted = bytes_while_counted(graph.num_vertices, num_keys) + copied
        needed = max(needed, gpu_plan.bytes_kept(*share) + counted)
    num_edges = graph.num_edges // size
    looks = prepared.reads_neighbors or prepared.reads_reverse
    num_copies = graph.num_edges - num_edges if looks else 0  # at most, before the graph is partitioned
    needed += gpu_plan.bytes_to_walk(prepared, num_edges, num_copies)
    return {"needed_bytes": needed, "free_bytes": gpu_plan.free_bytes()}


def _why_not_compiled(prepared: Any, graph: Graph, rank_on_host: int, schedule: Schedule) -> str:
    """Compile for the GPU, and tell what CUDA lacks that other devices have; empty where it lacks nothing."""
    from sigps.compiler.cuda.compile import compile_for_cuda
    from sigps.device.cuda import find_gpu
    from sigps.engine.gpu.variant import find_edge_obstacle

    ends = np.array([0, graph.num_vertices - 1])
    if graph.ids.kind != "strings":
        ends = graph.ids.to_oids(ends)  # ascending, so these two bound all
    is_narrow = bool(ends[0] >= -(2**31) and ends[1] < 2**31)
    arch = find_gpu(rank_on_host).arch
    try:
        with compiling:
            compiled = compile_for_cuda(prepared, column_types(graph), narrow_ids=is_narrow, arch=arch)
    except CompileError as error:
        return str(error)
    obstacle = find_edge_obstacle(compiled, arch) if schedule == "edge" else None
    return f"by edges it takes {obstacle}" if obstacle else ""


def column_types(graph: Graph) -> dict[str, np.dtype[Any]]:
    """Return the types of a graph's columns, by name."""
    return {name: column.dtype for name, column in graph.columns.items()}


_logged: set[str] = set()


def _log_once(text: str) -> None:
    if text not in _logged:
        _logged.add(text)
        log.info(text)
