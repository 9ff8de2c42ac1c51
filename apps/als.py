"""Alternating least squares: vectors of 16 numbers for users and items, whose products are near the ratings.

Users and items take turns: each solves the equations that make the error of its own ratings smallest while
the other side stays as it is. An edge leads from a user to an item, and its weight is the rating. A vertex
may be both.

    loss = sum { (weight(u, i) - user(u) . item(i))^2 : (u, i) an edge } + r sum { |user(v)|^2 + |item(v)|^2 }
    (sum { f f' : f = item(i), (u, i) an edge } + r I) user(u) = sum { weight(u, i) item(i) : (u, i) an edge }

r is `regularisation`, which is positive. The aggregator `loss` falls from superstep to superstep. Items begin
between -1/4 and 1/4, drawn by the run's seed. 2 `iterations` + 1 supersteps.

Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, "Large-scale parallel collaborative filtering for the Netflix
prize", AAIM 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 1], [2, 3, 2, 3], weights=[1.0, 2.0, 3.0, 6.0])
>>> result = sigps.run(ALS(regularisation=1e-4), graph)
>>> (result["user"][:2] @ result["item"][2:].T).round(2).tolist()
[[1.0, 2.0], [3.0, 6.0]]
"""

import math
from typing import NamedTuple

from sigps import Aggregator, Param, State, Vector, Vertex, above, at_least

Factors = Vector[float, 16]


class Rated(NamedTuple):
    """One term of each side of the equations, and of the loss."""

    products: Vector[float, 256]
    sums: Factors
    square: float


class ALS(Vertex, message=Rated, both_ways=True):
    """The vectors of each vertex as a user and as an item, and the least loss of its own ratings."""

    iterations: Param[int] = at_least(0, default=10)
    regularisation: Param[float] = above(0, default=0.1)
    user: State[Factors] = 0.0
    item: State[Factors] = 0.0
    error: State[float] = 0.0
    loss = Aggregator.sum(float)

    def compute(self, messages):
        """Solve the equations that came from the other side, and send this side's."""
        is_users_turn = self.superstep % 2 == 1
        if self.superstep == 0:
            for k in range(16):
                self.item[k] = 0.5 * self.random() - 0.25
        else:
            sums = sum(m.sums for m in messages)
            found = solved(sum(m.products for m in messages), self.regularisation, sums)
            other = self.item if is_users_turn else self.user
            squares = sum(m.square for m in messages)
            self.error = squares - found @ sums
            self.loss += self.error + self.regularisation * (other @ other)
            if is_users_turn:
                self.user = found
            else:
                self.item = found
        f = self.user if is_users_turn else self.item
        if self.superstep == 2 * self.iterations:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                if edge.leads_out if self.superstep % 2 == 1 else edge.leads_in:
                    self.send(edge, Rated(outer(f), edge.weight * f, edge.weight * edge.weight))


def outer(f):
    """Return the products of all pairs, row by row."""
    products = Vector[float, 256](0.0)
    for i in range(16):
        for j in range(16):
            products[16 * i + j] = f[i] * f[j]
    return products


def solved(a, regularisation, b):
    """Return x of (a + regularisation * I) x = b, by Cholesky's factors L L' of the matrix."""
    for i in range(16):
        for j in range(i + 1):
            rest = a[16 * i + j] + (regularisation if i == j else 0.0)
            for k in range(j):
                rest -= a[16 * i + k] * a[16 * j + k]
            a[16 * i + j] = math.sqrt(rest) if i == j else rest / a[17 * j]
    for i in range(16):
        for k in range(i):
            b[i] -= a[16 * i + k] * b[k]
        b[i] /= a[17 * i]
    for i in range(15, -1, -1):
        for k in range(i + 1, 16):
            b[i] -= a[16 * k + i] * b[k]
        b[i] /= a[17 * i]
    return b
