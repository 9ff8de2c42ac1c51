"""Programs whose master() is drawn from the grammar of `drawn_programs.py`."""

from __future__ import annotations

import re
import textwrap

import numpy as np
from cells import run_cell
from drawn_programs import FIELDS, Drawing

from sigps import ComputeError, Graph, Vertex, run

__all__ = ["RoundedAlike", "drawn_master", "outcome_of"]

_DIFFERS = re.compile(r"math\.(exp|log|hypot|gamma|atan2)\(")
"""What stays Python, since its last bits are not the same everywhere."""

_MADE = """
from sigps import Shared
class Program(Vertex):
    total = Aggregator.sum(int)
    v = Aggregator.max(Vector[float, 4])
    n = Aggregator.min(Vector[int, 4])
    turns: Param[int] = 3
"""

_COMPUTE = """
def compute(self, messages):
    self.total += 1
    self.v += (-1.5, 0.5 * self.superstep, 1e300, 0.0)
    self.n += (3, -self.superstep, 2**62, 0)
"""


class RoundedAlike(Drawing):
    """Draws floats whose bits are the same everywhere."""

    def real(self, depth: int) -> str:
        while True:
            text = super().real(depth)
            if not _DIFFERS.search(text) and "** (" not in text and ") ** " not in text:
                return text


class _Drawing(RoundedAlike):
    """Assigns shared values, too."""

    def body(self) -> list[str]:
        pick = self._random
        lines = [f"i{n} = {pick.randrange(-9, 9)}" for n in range(3)]
        lines += [f"f{n} = {pick.uniform(-9, 9)!r}" for n in range(3)]
        lines += [f"b{n} = self.b" for n in range(3)]
        lines += [f"m0, m1 = {pick.choice(['1, 0.5', '0.5, 2', 'self.i, f0', '1, 2'])}"]
        lines += ["v0 = self.v", "v1 = v0 * 0.5", "n0 = self.n"]
        for _ in range(pick.randrange(1, 5)):
            lines += self.statement(2)
        lines = [re.sub(r"self\.[vn](\[.*?\])? [+*-]?= .*", "pass", line) for line in lines]
        lines += [
            "self.m = m0 * 4611686018427387904",
            f"self.f = {self.real(2)}",
            f"self.b = {self.truth(2)}",
        ]
        return [*lines, f"self.w = {self.unsigned(1)}", "if self.superstep >= self.turns:", "    self.stop()"]


def drawn_master(seed: int) -> Vertex:
    """Return a program whose master() reads and sets eight shared values of all kinds, and reads two vectors."""
    drawing = _Drawing(seed)
    values = {
        "i": seed - 9,
        "k": 3,
        "u": 200,
        "f": 0.25 * seed,
        "b": "True",
        "w": 2**64 - 1 - seed,
        "v": 0,
        "n": 0,
    }
    fields = re.sub(r"State\[Vector.*|State\[", lambda found: found[0].replace("State", "Shared"), FIELDS)
    fields = re.sub(r"\n[vn]: .*", "", fields).format(**values)
    body = textwrap.indent("\n".join(drawing.body()), "    ")
    source = _MADE + textwrap.indent(f"{fields}\n{_COMPUTE}\ndef master(self):\n{body}", "    ")
    program: Vertex = run_cell(source)["Program"]()
    return program


def outcome_of(program: Vertex, device: str) -> tuple[list[bytes], int] | str:
    """Return the bits of all shared values and how many supersteps there were, or what the error says."""
    try:
        result = run(program, Graph.from_edges([0, 1], [1, 2]), device=device, max_supersteps=9)  # type: ignore
    except ComputeError as error:
        return str(error)
    names = [a.name for a in program.declaration.aggregators]
    found = [np.asarray(result.aggregators[name]) for name in names]
    return [
        np.where(f != f, np.nan, f).tobytes() if f.dtype.kind == "f" else f.tobytes() for f in found
    ], result.supersteps
