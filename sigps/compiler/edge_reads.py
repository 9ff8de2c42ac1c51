"""Which values on edges compute() reads of the other end: `edge.reverse.name`."""

from __future__ import annotations

import ast

from sigps.compiler.program import VertexProgram
from sigps.native.trees import walk

__all__ = ["states_read_of_reverse"]

_COMMITTED = "__committed_"


def states_read_of_reverse(program: VertexProgram) -> tuple[int, ...]:
    """Return the positions among `edge_states` of those that compute() reads of the other end of an edge.

    Of a program that looks through rows of neighbours, also those that it reads there.
    """
    read = {
        node.id.removeprefix(_COMMITTED)
        for node in walk(program.module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id.startswith(_COMMITTED)
    }
    return tuple(i for i, field in enumerate(program.edge_states) if field.name in read)
