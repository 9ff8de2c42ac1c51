"""Classes from source text, as a notebook makes them: a cell's lines are in `linecache` and in no file."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

from sigps import Vertex

_NUMBERS = itertools.count(1)

IMPORTS = """
import math
import random
import numpy as np
from typing import NamedTuple
from sigps import Aggregator, EdgeState, Param, State, Vector, Vertex, VertexId, inf, wrapping
"""


def run_cell(source: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a cell of a notebook; the names it leaves are the next cell's."""
    file = f"<ipython-input-{next(_NUMBERS)}-0123456789ab>"
    text = textwrap.dedent(source).lstrip("\n")
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"__name__": "__main__"} if names is None else names
    exec(compile(IMPORTS, "<imports>", "exec", dont_inherit=True), names)
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def program_of(
    body: str, fields: str = "", *, message: str = "message=float", before: str = "", **params: Any
) -> Vertex:
    """Return a program of the class `Program` whose compute() has this body."""
    source = (
        f"{textwrap.dedent(before).strip()}\nclass Program(Vertex, {message}):\n    x: State[float] = 0.0\n"
    )
    source += textwrap.indent(textwrap.dedent(fields), "    ")
    source += "\n    def compute(self, messages):\n" + textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    program: Vertex = run_cell(source)["Program"](**params)
    return program
