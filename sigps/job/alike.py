"""A run that is asked for as an earlier one on its graph was, but for the values of parameters.

What was checked, chosen and compiled for the earlier one then serves again: that takes 15 us where `prepared` takes 45,
and on several ranks 350, with four exchanges, of which one is left: whether all have it. It stays with the graph, and
refers to no graph itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from sigps.compiler.program import VertexProgram
from sigps.engine.contract import Executable, RunFacts, RunOptions
from sigps.engine.table import engine_of
from sigps.graph.graph import Graph
from sigps.job.importing import stop_if_imported
from sigps.job.preparing import (
    Prepared,
    bind_ids,
    prepared,
    seeded,
    turned,
    warn_of_rounding,
)
from sigps.model.declaration import Declaration
from sigps.model.vector import VectorType
from sigps.model.vertex import Vertex

__all__ = ["prepared_alike"]

_SAME = itemgetter(
    *("device", "max_supersteps", "deterministic", "gather", "schedule", "direction", "precision"),
    *("asynchronous", "threads", "transport", "resume", "stream", "transfer", "tiles"),
)
"""Options that decide how a run goes. What is left is the seed."""

_MOST_KEPT = 16


class _Kept(NamedTuple):
    """What is the same for runs that are asked for alike.

    Attributes:
        declaration: That of the class.
        derived: What the compiler made of the class: it is another one when code has changed that the class refers to.
        facts, executable, options, why_device: As `Prepared` has them.
    """

    declaration: Declaration
    derived: VertexProgram
    facts: RunFacts
    executable: Executable
    options: RunOptions
    why_device: str


class _KeptRuns(dict[Any, _Kept]):
    """By what they were asked for. Copies of a graph, and what is pickled of it, begin without any."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _KeptRuns, ()


def prepared_alike(program: Vertex, graph: Graph, options: Mapping[str, Any]) -> Prepared:
    """Return what `prepared` returns; from an earlier run on the graph where one was asked for alike, on all ranks."""
    from sigps.system.worker_manager import WorkerManager

    if not isinstance(graph, Graph):
        return prepared(program, graph, **options)
    known = graph.derived("runs asked for", _KeptRuns)
    key = _key(program, graph, options)
    kept = None if key is None else _usable(program, known, key)
    is_kept = kept is not None
    if graph.group.size > 1:  # options may be a rank's own, as that of rank 0 which shows progress
        is_kept = all(graph.group.all_gather(is_kept))
    if kept is None or not is_kept:
        made = prepared(program, graph, **options)
        if key is not None:
            _keep(made, options, known, key)
        return made
    stop_if_imported()
    program = seeded(program, options["seed"])
    manager = WorkerManager(graph, options["threads"])
    graph = manager.graph = turned(graph, program)
    warn_of_rounding(program, graph, kept.derived)
    bound = bind_ids(program, graph)
    return Prepared(
        program, bound, graph, manager, kept.facts, kept.executable, kept.options, kept.why_device
    )


def _key(program: Vertex, graph: Graph, options: Mapping[str, Any]) -> Any:
    """Return what runs that are asked for alike have in common; None where a run has more to look at."""
    if not (isinstance(program, Vertex) and _is_plain(graph, options)):
        return None
    given = _SAME(options)
    key = type(program), given, tuple(map(type, given)), engine_of(options["device"]).first_device()
    try:  # types: 1 is no True
        hash(key)
    except TypeError:  # an option that is no plain value, which `prepared` says
        return None
    return key


def _usable(program: Vertex, known: Mapping[Any, _Kept], key: Any) -> _Kept | None:
    """Return what an earlier run left, if the program is still what it was made of."""
    from sigps.compiler.frontend.analysis import analyse

    kept = known.get(key)
    if kept is None or program.declaration is not kept.declaration:
        return None
    return kept if analyse(program, kept.options.precision) is kept.derived else None


def _is_plain(graph: Graph, options: Mapping[str, Any]) -> bool:
    """Return whether a run looks at nothing but the graph, its class and the options of `_SAME`."""
    return (
        options["device"] in ("cuda", "cpu")
        and graph.packed is None
        and options["trace"] is None
        and options["checkpoint"] is None
        and options["initial"] is None
        and options["host_memory"] is None
        and options["device_memory"] is None
        and options["faults"] is None
        and (options["progress"] is None or callable(options["progress"]))
    )


def _keep(made: Prepared, options: Mapping[str, Any], known: dict[Any, _Kept], key: Any) -> None:
    """Keep what was prepared for runs that are asked for alike, where all of it is the same for them."""
    from sigps.compiler.frontend.analysis import analyse

    declared = made.program.declaration
    is_of_class = declared is type(made.program).declaration  # else it depends on the values of parameters
    reads_columns = any(field.column is not None for field in declared.states)
    lists_ids = any(field.is_vertex_id and isinstance(field.type, VectorType) for field in declared.params)
    is_streamed = made.executable.spec is not engine_of(options["device"])
    if not is_of_class or reads_columns or lists_ids or is_streamed:
        return
    for oldest in list(known)[
        : max(0, len(known) - _MOST_KEPT + 1)
    ]:  # other threads may run on the graph, too
        known.pop(oldest, None)
    derived = analyse(made.program, made.options.precision)
    known[key] = _Kept(declared, derived, made.facts, made.executable, made.options, made.why_device)
