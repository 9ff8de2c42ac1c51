"""What a run must have in common with a state log to go on from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from sigps.compiler.fingerprint import class_fingerprint, fingerprint
from sigps.graph.fingerprint import fingerprint as graph_fingerprint
from sigps.graph.graph import Graph
from sigps.model.vertex import Vertex

__all__ = ["Identity"]


@dataclass(frozen=True)
class Identity:
    """What a run is.

    Attributes:
        program: The program's name.
        program_key: A hash of what Python made of its methods, of the functions and values that these name, of
            its parameters, and of what it declares: another Python makes another hash.
        graph_key: A hash of the graph.
    """

    program: str
    program_key: str
    graph_key: str

    @classmethod
    def of(cls, program: Vertex, graph: Graph, precision: Literal["single", "double"]) -> Identity:
        """Return a run's. Collective; O(edges) once a graph.

        Args:
            program: As the user made it: its vertex ids are the user's.
            graph: The graph that it runs on.
            precision: The array type of Python's `float`.
        """
        declared = program.declaration
        parts = [repr(program.params), class_fingerprint(type(program))]
        functions = [declared.combiner, *(a.function for a in declared.aggregators)]
        parts += [fingerprint(function, set()) for function in functions]
        parts += [
            f"{f.name} {f.dtype(precision)} {f.default} {f.measure}"
            for f in (*declared.states, *declared.message, *declared.edge_states)
        ]
        parts += [f"{a.name} {a.kind} {a.identity} {a.start} {a.persistent}" for a in declared.aggregators]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        return cls(type(program).__qualname__, key, graph_fingerprint(graph))
