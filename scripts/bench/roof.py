"""How near a superstep of PageRank comes to the memory's bandwidth: bytes that must move, over the time they took."""

from __future__ import annotations

from typing import Any

__all__ = ["ROOF", "bytes_of_pagerank_superstep", "shares_of_roof"]

ROOF = 4.19e12
"""Bytes a second that an NVIDIA H200's memory gives, as measured."""


def bytes_of_pagerank_superstep(num_vertices: int, num_edges: int) -> dict[str, int]:
    """Return what must move, in single precision.

    Returns:
        `indices`: every edge's, once. `gathered`: the record that each edge brings. `records`: every record once,
        which is what is left of `gathered` where caches hold all others. `fields`: of each vertex the rank and the
        record written, its degree and status read.

    >>> bytes_of_pagerank_superstep(10, 100)
    {'indices': 400, 'gathered': 400, 'records': 40, 'fields': 130}
    """
    return {
        "indices": 4 * num_edges,
        "gathered": 4 * num_edges,
        "records": 4 * num_vertices,
        "fields": (4 + 4 + 4 + 1) * num_vertices,
    }


def shares_of_roof(num_vertices: int, num_edges: int, seconds: float) -> dict[str, Any]:
    """Return the least time at the roof, and its share of the time taken; both also as if every record came once.

    >>> shares_of_roof(4_194_304, 128_305_110, 0.573e-3)["share_of_roof"]
    0.45
    """
    moved = bytes_of_pagerank_superstep(num_vertices, num_edges)
    fixed = moved["indices"] + moved["fields"]
    floors = {"": (fixed + moved["gathered"]) / ROOF, "_cached": (fixed + moved["records"]) / ROOF}
    found: dict[str, Any] = {}
    for name, floor in floors.items():
        found[f"floor{name}_ms"] = round(floor * 1e3, 3)
        found[f"share_of_roof{name}"] = round(floor / seconds, 3)
    return found
