"""What `device="auto"` is, as a pure function of what is known before anything is compiled."""

from __future__ import annotations

__all__ = ["GPU_PAYS_FROM_EDGES", "reason_against_gpu"]

GPU_PAYS_FROM_EDGES = 10_000_000
"""Stored edges from which a GPU is started unasked.

Starting CUDA's libraries and bringing the graph over takes about a second; in a second a few cores pass ten million
edges some seventy times. A process that runs program after program gains from smaller graphs too, but is not known.
"""


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
