"""What several tests share of `test_snapshot`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from engines import compiled, interpreted, laid_out, master_of
from ways import RELATIVE

from sigps import Graph, Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.device.cuda import find_gpu
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.snapshot import Snapshot


def on_gpu(program: Vertex, graph: Graph, **options: Any) -> GpuEngine:
    native = GpuProgram(analyse(program), find_gpu())
    params = tuple(f.dtype("double").type(getattr(program, f.name)) for f in native.program.params)
    master = master_of(program, graph)
    return GpuEngine(native, params, *laid_out(graph), master=master, saves=True, **options)


MAKERS = {"cuda": on_gpu, "cpu": compiled, "python": interpreted}


def written(snapshot: Snapshot) -> Snapshot:
    """Return what a log would have of it."""
    on_host = {
        name: tuple(map(np.asarray, value)) if isinstance(value, tuple) else np.asarray(value)
        for name, value in vars(snapshot).items()
        if name in ("status", "states", "ends", "values", "edges")
    }
    return replace(snapshot, **on_host)


def assert_near(found: Any, expected: Any, note: str) -> None:
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=RELATIVE, err_msg=note)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=note)
