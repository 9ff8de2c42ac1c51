"""What several tests share of `test_compile`."""

from __future__ import annotations

from typing import Any

from programs import CASES, kite

from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank

PROGRAMS: dict[str, Any] = {
    "BFS": lambda: BFS(source=0),
    "OutDegree": OutDegree,
    "PageRank": PageRank,
    "PageRank_tolerance": lambda: PageRank(tolerance=1e-6, dangling="leak"),
    "SSSP": lambda: SSSP(source=0),
    "WCC": WCC,
    **{name: case.program for name, case in CASES.items()},
}


COLUMNS = {name: values.dtype for name, values in kite().columns.items()}
