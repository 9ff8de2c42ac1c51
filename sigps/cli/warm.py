"""`sigps doctor --warm`: fill the cache of compiled code, so that a first run compiles little or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from sigps.errors import SigpsError

if TYPE_CHECKING:
    from sigps.graph import Graph
    from sigps.model.vertex import Vertex

__all__ = ["warm"]

_Directions = tuple[Literal["auto", "push", "pull"], ...]

_EACH_DIRECTION: _Directions = ("auto", "push", "pull")
_BY_ITSELF: _Directions = ("auto",)


def warm() -> Iterator[tuple[str, int, list[str]]]:
    """Run every program of `sigps.apps` on small graphs, in each direction, on each device that compiles and is here.

    Runs on graphs of the same column types, without weights or with weights in float64, then find in the cache what
    these ran: on a GPU all kernels, the layout's among them; on CPU cores all but loops that only large graphs take.

    Yields:
        A device, how many programs were run there, and the names of those that were not, with why.
    """
    from sigps.engine.table import ENGINES

    graphs = _graphs()
    for spec in ENGINES:
        if spec.is_compiled and not spec.missing():
            programs = _programs(graphs[0][0])
            if spec.device == "cuda":
                _link_building()
            failed = [f"{n}: {why}" for n, p in programs.items() if (why := _run(p, graphs, spec.device))]
            yield spec.device, len(programs) - len(failed), failed


def _link_building() -> None:
    """Link the kernels that build graphs, which are larger than those here."""
    from sigps.device.cuda import find_gpu
    from sigps.device.linking import link_kernel

    for file in ("building", "drawing"):
        link_kernel(file, find_gpu().arch)


def _graphs() -> list[tuple[Graph, _Directions]]:
    """Return small skewed graphs, and meshes, which have a kernel of their own on a GPU; and how they are run on.

    Of each kind one is undirected without weights, with capacities, and one directed with weights.
    """
    import numpy as np

    from sigps.graph.generators.generate import generate
    from sigps.graph.graph import Graph

    found: list[tuple[Graph, _Directions]] = []
    for plain, directions in (
        (generate("rmat", scale=8, edge_factor=8, seed=1), _EACH_DIRECTION),
        (generate("grid", rows=16, columns=16), _BY_ITSELF),
    ):
        degrees = (plain.offsets[1:] - plain.offsets[:-1]).astype(np.int64)
        sources = np.repeat(np.arange(plain.num_vertices), degrees)
        targets = plain.targets.astype(np.int64)
        ones = np.ones(targets.size, dtype=np.int64)
        weighted = Graph.from_edges(sources, targets, weights=1.0 + (sources + targets) % 16)
        found += [(replace(plain, columns={"up": ones, "down": ones}), directions), (weighted, directions)]
    return found


def _programs(graph: Graph) -> dict[str, Vertex]:
    """Return the programs by name; parameters that must be given are vertices with most edges, or a small number."""
    import numpy as np

    from sigps import apps

    hubs = np.argsort(graph.offsets[:-1] - graph.offsets[1:], kind="stable").tolist()
    found = {}
    for name, cls in vars(apps).items():
        if hasattr(cls, "declaration"):
            needed = [field for field in cls.declaration.params if field.default is field.REQUIRED]
            given = {field.name: hubs[i] if field.is_vertex_id else 0.01 for i, field in enumerate(needed)}
            found[name] = cls(**given)
    return found


def _run(program: Vertex, graphs: list[tuple[Graph, _Directions]], device: str) -> str:
    """Run a program on each graph; return why not, where none has what it reads."""
    from sigps.job.run import run

    why, was_run = "", False
    for graph, directions in graphs:
        try:
            for direction in directions:
                run(program, graph, device=device, direction=direction)
        except SigpsError as error:
            why = str(error)
        else:
            was_run = True
    return "" if was_run else why
