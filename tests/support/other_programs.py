"""What `name_programs` imports: a base class and functions whose globals have the same names as others there."""

from __future__ import annotations

from sigps import Param, State, Vertex

SCALE = 100.0
OFFSET = 0.25


def tripled(x):
    return 3 * x


def merge(a, b):
    """Have the name of one of the compiler's own functions."""
    return 10 * a + b


class Base(Vertex, message=float):
    factor: Param[float] = 3.0
    noted: State[int] = 0
    bonus = 7

    def scaled(self, x):
        return x * self.factor + SCALE

    def note(self):
        self.noted += int(SCALE)
