"""A function for some types of arguments, and where its arithmetic may have no result."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sigps.native.types import NONE, UINT, Number, Tuple, Type, Vector, flat

__all__ = ["FunctionTable", "Instance", "Place", "Site", "changes"]

Site = tuple[str, int, int]
"""Where arithmetic may have no result: file, line, and which kind of fault."""


Place = tuple[str, int, int, int, int]
"""Where something is written: file, line and column, last line and column."""


@dataclass(eq=False)
class Instance:
    """A function for some types of arguments.

    Attributes:
        is_checked: Whether arithmetic is a program's; that of loops is the machine's, and no faults.
        may_not_end: Whether a `while` is the user's, and looks whether the user wants the run to end.
        reorders: Whether sums of floats may be done in any order.
        has_nan: Whether a message may be NaN.
        result: The type of what it returns.
        variables: The types of its variables.
        literals: The variables that have only been given constants that are not negative.
        can_fault: Whether it may return a fault.
        joined: The type that a whole number, or a vector, is given where it meets values of other types in a variable
            or an expression, by where it is written; None where it keeps its own.
        copies: The same for the first of the copies of a method that is put in place where it is called.
        conflict: A node at which two copies differ, if there is one.
    """

    name: str
    tree: ast.FunctionDef
    meanings: Mapping[str, Any]
    arguments: tuple[Type, ...]
    is_checked: bool = True
    may_not_end: bool = False
    reorders: bool = False
    has_nan: bool = True
    result: Type | None = None
    variables: dict[str, Type] = field(default_factory=dict)
    literals: set[str] = field(default_factory=set)
    can_fault: bool = False
    joined: dict[Place, Type | None] = field(default_factory=dict)
    copies: dict[Place, tuple[int, Type | None]] = field(default_factory=dict)
    conflict: ast.AST | None = None
    is_found: bool = False

    def note_joined(self, node: ast.AST, value: Type, kind: Type) -> None:
        """Note the type that a value is given at a node."""
        if not hasattr(node, "lineno") or not (_has_whole(value) or isinstance(value, Vector)):
            return
        end = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        place = getattr(node, "sigps_file", ""), node.lineno, node.col_offset, *end  # type: ignore[attr-defined]
        found = kind if changes(value, kind) else None
        copy = getattr(node, "sigps_copy", 0)
        first = self.copies.setdefault(place, (copy, found))
        if first[0] != copy and (first[1] is None) != (found is None):
            self.conflict = node
        if found is not None:
            self.joined[place] = found
        else:
            self.joined.setdefault(place, None)

    @property
    def num_results(self) -> int:
        return len(list(flat(self.result or NONE)))


def changes(value: Type, kind: Type) -> bool:
    """Tell whether a number means something else in a type that it is joined to: a float, a np.uint64 or a vector."""
    if isinstance(value, Tuple) and isinstance(kind, Tuple):
        return any(map(changes, value.items, kind.items))
    if isinstance(value, Vector) and isinstance(kind, Vector):
        return changes(value.element, kind.element)
    if isinstance(value, Number) and isinstance(kind, Number):
        return _has_whole(value) and (kind.is_float or (kind == UINT and value != UINT))
    return isinstance(value, Number) and isinstance(kind, Vector)


def _has_whole(kind: Type) -> bool:
    return any(isinstance(part, Number) and not part.is_float for part in flat(kind))


class FunctionTable(Protocol):
    """What a function's body asks of the others: `builder.Functions`."""

    real: Number

    def __contains__(self, name: str) -> bool: ...
    def instance(
        self,
        function: Any,
        arguments: tuple[Type, ...],
        *,
        is_checked: bool = True,
        reorders: bool = False,
        has_nan: bool = True,
    ) -> Instance: ...
    def site(self, node: ast.AST, kind: int) -> int: ...
    def tree(self, name: str) -> ast.FunctionDef: ...
