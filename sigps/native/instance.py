"""A function for some types of arguments, and where its arithmetic may have no result."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sigps.native.types import NONE, Number, Type, flat

__all__ = ["FunctionTable", "Instance", "Site"]

Site = tuple[str, int, int]
"""Where arithmetic may have no result: file, line, and which kind of fault."""


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
    is_found: bool = False

    @property
    def num_results(self) -> int:
        return len(list(flat(self.result or NONE)))


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
