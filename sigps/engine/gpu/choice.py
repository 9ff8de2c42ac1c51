"""What `device="auto"` is, as a pure function of what is known before anything is compiled."""

from __future__ import annotations

import math
import os
import platform
from typing import Any

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.device import nccl
from sigps.device.cuda import Gpu, reachable
from sigps.model.aggregator import cells_of

__all__ = [
    "GPU_PAYS_FROM_EDGES",
    "SLOWER_ON_GPUS",
    "bytes_of_totals",
    "find_gpu_obstacle",
    "gpu_facts",
    "most_totals",
    "reason_against_gpu",
    "reason_not_to_resume",
]

SLOWER_ON_GPUS = (
    "a GPU takes longer for common_neighbors() in loops that do more than count or take minima and maxima, "
    "where some vertices have very many edges"
)

GPU_PAYS_FROM_EDGES = 10_000_000
LONGEST_SUM = 256
"""The longest vectors of floats that a GPU adds up in a deterministic run: each number takes 32 bytes of an inbox."""
"""Stored edges from which a GPU is started unasked.

Starting CUDA's libraries and bringing the graph over takes about a second; in a second a few cores pass ten million
edges some seventy times. A process that runs program after program gains from smaller graphs too, but is not known.
"""


_STATIC_BYTES = 48 << 10


def reason_against_gpu(
    *,
    num_edges: int,
    obstacle: str | None,
    missing: str = "",
    needed_bytes: int = 0,
    free_bytes: int = 0,
) -> str:
    """Tell why a run with `device="auto"` stays on the CPU; empty where it should go to the GPU.

    Args:
        num_edges: Edges of the graph as stored, a rank's share of them.
        obstacle: What of the program the GPU engine is not built for, or None (`find_gpu_obstacle`).
        missing: What the machine lacks (`what_is_missing`); empty for nothing, or while it has not been asked.
        needed_bytes: What the graph takes on a GPU while it is laid out; 0 while there is nobody to ask.
        free_bytes: What the GPU has.

    >>> reason_against_gpu(num_edges=50_000_000, obstacle=None)
    ''
    >>> reason_against_gpu(num_edges=50_000, obstacle=None)
    'a GPU pays from 10,000,000 edges'
    """
    against = {
        f"a GPU pays from {GPU_PAYS_FROM_EDGES:,} edges": num_edges < GPU_PAYS_FROM_EDGES,
        f"the GPU engine is not built for {obstacle} yet": obstacle is not None,
        f"no GPU can be used: {missing}": bool(missing),
        f"the GPU has {free_bytes:,} bytes free of {needed_bytes:,}": needed_bytes > free_bytes,
    }
    return next((reason for reason, holds in against.items() if holds), "")


def find_gpu_obstacle(program: VertexProgram, deterministic: bool) -> str | None:
    """Tell what of a program the GPU engine is not built for yet; None where it can run.

    Args:
        program: The program.
        deterministic: Whether sums of floats must not depend on how the work is divided.
    """
    if program.consumption is Consumption.GROUPED and program.reads_neighbors:
        return "common_neighbors() beside messages that are grouped by key"
    if deterministic and (obstacle := find_order_obstacle(program)) is not None:
        return obstacle
    if (num_bytes := bytes_of_totals(program, deterministic)) > (most := most_totals(program, deterministic)):
        return f"aggregators of {num_bytes:,} bytes, of which the shared memory of a block holds {most:,},"
    return None


def bytes_of_totals(program: VertexProgram, deterministic: bool = False) -> int:
    """Return the bytes of what all aggregators add up: 8 a number, 32 a float whose sum is deterministic."""
    of_all = (cells_of(a) if deterministic else [a] for a in program.aggregators)
    return 8 * sum(math.prod(cell.field.dtype().shape) for cells in of_all for cell in cells)


def most_totals(program: VertexProgram, deterministic: bool = False, *, has_peers: bool = False) -> int:
    """Return how many such bytes kernels over edges in memory have room for: with more they do not link.

    A block declares 48 KiB at most: totals of 32 warps; among GPUs that write into each other's memory 9 reports with
    totals, twice with direct messages; and inboxes and lists, counted in what is compiled of programs of all kinds and
    rounded up. A program whose messages are far larger than what vertices send of them may have more, and not link.

    Args:
        program: The program.
        deterministic: Whether sums of floats are.
        has_peers: Whether GPUs write into each other's memory.
    """
    is_direct = program.delivery is Delivery.DIRECT
    is_listed = program.consumption is Consumption.LISTED
    inbox = 0 if is_listed else sum(d.itemsize for d in program.message_dtypes) * (4 if deterministic else 1)
    reports = 9 * has_peers * (1 + is_direct)
    beside = max(2176, 14 * inbox + 1024) + 4096 * is_direct + 72 * reports
    return 8 * max(0, (_STATIC_BYTES - beside) // (8 * (32 + reports)))


def find_order_obstacle(program: VertexProgram) -> str | None:
    """Tell what of a program depends on the order of messages or vertices there; None where nothing does."""
    floats, ops = [d for d in program.message_dtypes if d.base.kind == "f"], program.slot_ops
    if floats and program.consumption is Consumption.GROUPED:
        return "deterministic sums of floats by key"
    if floats and program.consumption is Consumption.LISTED:
        return "deterministic runs that read floats one by one, whose order is open"
    if floats and "prod" in ops:
        return "deterministic products of floats"
    added = [*floats] if "sum" in ops else []
    added += [d for a in program.aggregators if a.kind == "sum" and (d := a.field.dtype()).base.kind == "f"]
    if any(d.shape and d.shape[0] > LONGEST_SUM for d in added):
        return f"deterministic sums of vectors of more than {LONGEST_SUM} floats"
    by_function = [d for slot in program.slots if slot.op == "user" for d in program.message_dtypes]
    by_function += [a.field.dtype() for a in program.aggregators if a.function is not None]
    if any(d.base.kind == "f" for d in by_function):
        return "deterministic runs in which a function of yours combines floats"
    return None


def reason_not_to_resume(program: VertexProgram, resumes: bool) -> str | None:
    """Tell which state logs of another device the GPU engine cannot read; its own it can."""
    combines = program.consumption is not Consumption.LISTED
    if resumes and combines and program.delivery is Delivery.DIRECT:
        return "state logs of a CPU that combined what send_to() sent"
    return None


def gpu_facts(gpu: Gpu, *, alone: bool = False) -> dict[str, Any]:
    """Return what the choice needs to know of a rank on a GPU; of one that is alone NCCL is not loaded."""
    return {
        "device": "cuda",
        "host": platform.node(),
        "process": os.getpid(),
        "gpu": gpu.bus_id,
        "reaches": reachable(gpu),
        "without_nccl": "" if alone else nccl.why_not(),
    }
