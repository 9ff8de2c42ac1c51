"""Where a program's values are given another type, since a variable or an expression has one: for the interpreter."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.compiler.cpu.inference import infer_types, master_types
from sigps.compiler.cpu.rows import Dtypes
from sigps.compiler.program import FUNCTIONS, VertexProgram, compiling
from sigps.errors import CompileError
from sigps.native.builder import Functions, Instance
from sigps.native.instance import Place
from sigps.native.types import Type

__all__ = ["NOTHING", "Joined", "Places", "joined_types"]

Places = dict[Place, Type]


@dataclass(frozen=True, eq=False)
class Joined:
    """Types by where values are written: a whole number, or a vector, that is written there is given that type.

    Attributes:
        places: Where the type is the same for all calls of the function that it is written in.
        variants: Of other functions, by file and first line: types of arguments, and the places of such calls.
    """

    places: Places
    variants: dict[tuple[str, int], list[tuple[tuple[Type, ...], Places]]]


NOTHING = Joined({}, {})


def joined_types(program: VertexProgram, columns: Mapping[str, np.dtype[Any]]) -> Joined:
    """Return where a program's values are given another type; nothing of a program that cannot be compiled."""
    used, read = (
        tuple(columns.get(c, np.dtype(np.float64)) for c in names)
        for names in (program.edge_columns, program.read_columns)
    )
    with compiling:
        return _joined_types(program, used, read)


@functools.lru_cache(maxsize=256)
def _joined_types(program: VertexProgram, used: Dtypes, read: Dtypes) -> Joined:
    functions = Functions(program.module, program.namespace)
    try:
        infer_types(program, functions, used, read)
    except CompileError:
        return NOTHING
    found = functions.instances
    if program.master is not None:
        between = Functions(program.master.module, program.master.namespace)
        between.instance("master", master_types(program.params, program.aggregate_dtypes, "double"))
        found = [*found, *between.instances]
    places: Places = {}
    calls: dict[tuple[str, int], list[Instance]] = {}
    for instance in found:
        calls.setdefault((getattr(instance.tree, "sigps_file", ""), instance.tree.lineno), []).append(
            instance
        )
    variants = {}
    for where, instances in calls.items():
        changed = [{at: kind for at, kind in i.joined.items() if kind is not None} for i in instances]
        differ = any(
            i.joined.get(at, kind) != kind for c in changed for at, kind in c.items() for i in instances
        )
        if differ and not any(i.tree.name in (*FUNCTIONS, "master") for i in instances):
            variants[where] = [(_arguments(i), c) for i, c in zip(instances, changed, strict=True)]
        else:
            places |= {at: kind for c in changed for at, kind in c.items()}
    return Joined(places, variants) if places or variants else NOTHING


def _arguments(instance: Instance) -> tuple[Type, ...]:
    """Return the types of what the user's call gives a function or method."""
    given: list[tuple[ast.arg, Type]] = list(zip(instance.tree.args.args, instance.arguments, strict=True))
    return tuple(
        kind for arg, kind in given if not arg.arg.startswith("__") or arg.arg.startswith("__local_")
    )
