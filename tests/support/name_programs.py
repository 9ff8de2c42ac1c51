"""Programs that call and name things in every way: methods, properties, helpers, constants, closures."""

import math

import numpy as np
import other_programs
from other_programs import Base, merge

from sigps import Param, State, Vertex

SCALE = 2.5
WEIGHTS = (1, 10, 100)
state = 3


def halved(x):
    return doubled(x) / 4 + other_programs.OFFSET


def doubled(x):
    return 2 * x


class Methods(Vertex, message=float):
    """Methods: pure, of the run only, acting, static, of one another; properties and class constants."""

    START = 4
    STEPS = (1, 2, 3)
    mode = "fast"
    base: Param[float] = 1.5
    value: State[float] = 0.0
    rounds: State[int] = 0

    def compute(self, messages):
        """Docstrings, here and there, are no code."""
        if self.mode == "slow":
            self.no_such_method()
        if self.superstep == 0:
            self.value = self.START + self.offset()
        self.take(sum(self.weighed(m) for m in messages))
        gained = self.gain(2.0, self.base)
        self.value += gained
        if self.is_late or self.rounds > 5:
            return self.finish()
        for edge in self.out_edges:
            self.send(edge, self.cost(edge.weight) * self.value)

    @property
    def is_late(self):
        return self.superstep >= self.last()

    def last(self):
        return self.START - 2

    def offset(self):
        """Read the vertex."""
        return self.id * self.square(self.base) + self.STEPS[1]

    def weighed(self, m, by=0.5):
        return m * self.base * by

    def cost(self, weight):
        if weight > 2.0:
            return 2.0
        return weight

    @staticmethod
    def square(x):
        return x * x

    def take(self, total):
        """Act."""
        self.value += total
        self.rounds += 1

    def gain(self, a, b):
        self.rounds += 0
        gained = a + b
        return gained / 2

    def finish(self):
        self.vote_to_halt()


class Reading(Vertex, message=int):
    """A method that is given the messages."""

    total: State[int] = 0
    best: State[int] = 0

    def compute(self, messages):
        best = self.read(messages)
        self.best = best
        if self.superstep < 2:
            self.send_to_neighbors(self.id + self.superstep)
        self.vote_to_halt()

    def read(self, inbox):
        for m in inbox:
            self.total += m
        return max(inbox, default=-1)


class Functions(Vertex):
    """Module constants, helpers of helpers, math, NumPy, control flow, tuples."""

    digits: State[int] = 0
    length: State[float] = 0.0
    angle: State[float] = 0.0
    collatz: State[int] = 0
    swapped: State[int] = 0
    clipped: State[float] = 0.0

    def compute(self, messages):
        self.vote_to_halt()
        for i in range(len(WEIGHTS)):
            self.digits += WEIGHTS[i] * (self.id + i)
        for w in WEIGHTS:
            self.digits -= w
        self.length = (
            2**-self.id + math.sqrt(self.id**2 + SCALE) + halved(self.id) + other_programs.tripled(SCALE)
        )
        self.angle = np.arctan2(float(self.id), 2.0) + math.pi * np.cos(0.0)
        n, steps = self.id + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
            if steps > 50:
                break
        self.collatz = steps
        pair = (self.id, self.id + 1)
        a, b = pair
        a, b = b, a
        self.swapped = a * 10 + pair[0] - b
        if self.id > 2 and not 0 < self.id < 5:
            return
        self.clipped = (
            max(1.0, min(float(self.id), 1.5, 3.0)) + abs(-1) + round(2.6) + int(7.9) + (-7) // 2 + (-7) % 3
        )


class Derived(Base, message=float):
    """Fields, methods and constants from a class of another module, whose globals mean other things there."""

    own: State[float] = 0.0

    def compute(self, messages):
        self.own = self.scaled(SCALE) + sum(messages) + self.bonus
        self.note()
        if self.superstep < 2:
            self.send_to_neighbors(self.own)
        self.vote_to_halt()


def closure_program() -> Vertex:
    """Return a program whose class is written inside a function."""
    step, label = 3, "closure"

    def stepped(x):
        return x + step

    class Closure(Vertex, message=int):
        value: State[int] = 0

        def compute(self, messages):
            self.value = stepped(self.value) + sum(messages) * step
            if self.superstep < 2:
                self.send_to_neighbors(step)
            self.vote_to_halt()

    Closure.__doc__ = label
    return Closure()


class Options(Vertex):
    """Parameters that are no numbers are fixed when the program is compiled."""

    mode: Param[str] = "sum"
    limit: Param[float | None] = None
    flag: Param[bool] = True
    verbose: Param[bool | None] = None
    size: Param[np.int32] = 3
    value: State[float] = 0.0

    def compute(self, messages):
        if self.mode in ("sum", "total"):
            self.value = self.id + self.size
        elif self.mode == "product":
            self.value = self.id * self.size
        else:
            for edge in self.out_edges:
                if self.verbose:
                    self.value = edge.weight
        if self.limit is not None and self.value > self.limit:
            self.value = self.limit
        if not self.flag:
            self.value = -self.value
        self.value += 1 if self.verbose is None else 100 * bool(self.verbose)
        count = self.id and 1
        self.value += count * 1000
        self.vote_to_halt()


class Tail(Vertex, message=int):
    """Names of the framework's own as the user's locals, fields, globals and helpers."""

    has: State[int] = 5
    inbox: State[int] = 0
    value: Param[int] = 4

    def compute(self, messages):
        has = state
        env, params, vertex, inbox = 1, 2, 3.5, 4
        edges = direct = 6
        record = target = columns = message = aggregates = 7
        low = min(messages, default=has)
        self.has = low + env + params + edges + direct
        self.inbox = merge(inbox, int(vertex)) + record + target + columns + message + aggregates
        if self.superstep < 2:
            self.send_to_neighbors(self.id * self.value + merge(self.has, 1))
        self.vote_to_halt()
