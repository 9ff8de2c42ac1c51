"""Runs on packed edges that several ranks share, and a directed graph of long ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore

SEARCHES = [BFS(source=1), WCC(), KCore(), SSSP(source=1)]


def on_ranks(size: int, program: sigps.Vertex, folder: Path | list[Path], **options: Any) -> sigps.Result:
    """Return rank 0's result of a run on packed edges on so many ranks, none of which has edges in memory."""

    def work(group: ThreadGroup) -> tuple[sigps.Result, bool]:
        stored = sigps.load(folder, group=group)
        return sigps.run(program, stored, device="cuda", **options), stored.is_laid_out

    found = run_ranks(size, work)
    assert not any(is_laid_out for _, is_laid_out in found)
    return found[0][0]


def directed_graph(scale: int) -> sigps.Graph:
    """Return a graph with a path behind it, so that many supersteps have one sender."""
    made = sigps.generate("rmat", scale=scale, seed=1, directed=True)
    rows, first = made.in_edges(), made.num_vertices
    ends = np.repeat(np.arange(first), np.diff(rows.offsets).astype(np.int64))
    sources = np.concatenate([rows.sources, [0], np.arange(first, first + 20)])
    targets = np.concatenate([ends, np.arange(first, first + 21)])
    return sigps.Graph.from_edges(sources, targets, weights=((sources * 7 + targets * 3) % 9 + 1) * 0.5)
