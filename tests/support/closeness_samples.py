"""What several tests share of `test_app_closeness`."""

from __future__ import annotations

from typing import Any

from app_runs import vertices_of
from battery import Sample

from sigps.apps.source_by_source import turn_of


def drawn(sample: Sample, k: int, seed: int) -> list[Any]:
    """Return the k vertices whose turns come first; compute() sees the places of ids that are strings."""
    ids = vertices_of(sample)
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(ids)}
    return sorted(ids, key=lambda v: turn_of(numbers[v], seed))[:k]
