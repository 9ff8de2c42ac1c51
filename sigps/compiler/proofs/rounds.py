"""Rounds: all vertices run in each superstep, and what one does follows from itself, its messages and its rows alone.

Label propagation and heat diffusion are such programs. After an update a vertex then does in each superstep what it did
before, but where its rows changed, or its state or a message of the superstep before did. With the states and records
of every superstep kept, only those run again (`engine/cpu/rounds.py`); the number of supersteps stays, since nothing of
a vertex decides it (`together.py`). States are those of a full run, bit for bit: compute() runs on the same messages,
in the order of in-edges.

The proof reads the generated functions: none may read an aggregator or the number of edges, which any update changes
for all vertices, nor the far ends of its edges, which rows of versions hold by number alone.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.compiler.proofs.together import acts_together
from sigps.native.trees import walk

__all__ = ["Rounds", "names_read", "reads_rows", "rounds"]


@dataclass(frozen=True)
class Rounds:
    """A claim: all vertices run in each superstep, on nothing but themselves, their messages and their rows.

    Attributes:
        constant: Positions of the states that are assigned in superstep 0 alone.
        sent: Position of the state that is the whole record wherever one is sent; None where there is none.
        reads_size: Whether the number of vertices is read.
    """

    constant: frozenset[int]
    sent: int | None
    reads_size: bool


def rounds(program: VertexProgram) -> Rounds | str:
    """Return the claim, or why it does not hold."""
    if program.delivery is Delivery.DIRECT:
        return "messages do not go along edges as records"
    if program.consumption is Consumption.LISTED:
        return "compute() reads its messages one by one"
    if program.has_master or any(aggregator.is_shared for aggregator in program.aggregators):
        return "there is a master"
    if program.reads_edge_links:
        return "it keeps values on edges, or looks through rows of neighbours"
    if not acts_together(program):
        return "vertices do not all send together, and halt together"
    read = {name for function in program.module.body for name in names_read(function)}
    if any(name.startswith("__a_") for name in read):
        return "compute() reads an aggregator, which an update may change for all vertices"
    if "__num_edges" in read:
        return "compute() reads the number of edges, which updates change"
    if read & {"__edge_ids", "__edge_gids"}:
        return "compute() reads the targets of its edges"
    compute = program.function("compute")
    assert compute is not None
    names = [f"__s_{field.name.replace('.', '_of_')}" for field in program.states]
    constant = frozenset(i for i, name in enumerate(names) if _is_set_at_first(compute, name))
    sent = next(
        (i for i, name in enumerate(names) if i not in constant and _is_sent(program, compute, name)), None
    )
    return Rounds(constant, sent, "__num_vertices" in read)


def reads_rows(program: VertexProgram) -> bool:
    """Return whether anything along edges is read: messages, degrees, or edges of a vertex."""
    read = {name for function in program.module.body for name in names_read(function)}
    reads_degrees = bool(read & {"__out_degree", "__in_degree"})
    return program.delivery is not Delivery.NONE or program.reads_edges or reads_degrees


def names_read(tree: ast.AST) -> set[str]:
    """Return the names that are read, but for those of which an aggregator's value is only made (`cpu/exact.py`)."""
    if isinstance(tree, ast.Assign) and all(ast.unparse(t).startswith("__a_") for t in tree.targets):
        return set()
    if isinstance(tree, ast.Name):
        return {tree.id} if isinstance(tree.ctx, ast.Load) else set()
    return {name for child in ast.iter_child_nodes(tree) for name in names_read(child)}


def _is_set_at_first(compute: ast.FunctionDef, name: str) -> bool:
    """Return whether a state is assigned in superstep 0 alone."""
    for statement in compute.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "__superstep == 0":
            if any(name in _stored(other) for other in statement.orelse):
                return False
        elif not _unpacks(statement) and name in _stored(statement):
            return False
    return True


def _is_sent(program: VertexProgram, compute: ast.FunctionDef, name: str) -> bool:
    """Return whether the record has one field, which is this state as it is in the end."""
    if len(program.record) != 1:
        return False
    last = -1
    for at, statement in enumerate(compute.body):
        if name in _stored(statement):
            last = at
        found = [
            n for n in walk(statement) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__r0"
        ]
        for assigned in found:
            is_empty = assigned in compute.body and _is_number(assigned.value)  # before anything is sent
            if not is_empty and (last == at or _without_cast(assigned.value) != name):
                return False
    writes = [at for at, statement in enumerate(compute.body) if "__r0" in _stored(statement)]
    return len(writes) > 1 and last < writes[1]


def _without_cast(value: ast.expr) -> str:
    if isinstance(value, ast.Call) and ast.unparse(value.func).startswith("__np.") and len(value.args) == 1:
        value = value.args[0]
    return ast.unparse(value)


def _is_number(value: ast.expr) -> bool:
    inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
    return isinstance(inner, ast.Constant)


def _unpacks(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "__state"


def _stored(statement: ast.AST) -> set[str]:
    """Return the names that are assigned, or of which a part is."""
    found = set()
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            whole: ast.expr = node
            while isinstance(whole, ast.Subscript):
                whole = whole.value
            found.add(ast.unparse(whole))
    return found
