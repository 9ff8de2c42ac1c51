"""Programs for what NetworkX's functions ask beyond the algorithms of `sigps.apps`."""

from __future__ import annotations

from sigps import Aggregator, Param, State, Vertex, at_least


class DampedSums(Vertex, message=float):
    """Power iteration of x = damping * (sums of in-neighbours' shares + lost * dangling) + base.

    A vertex shares x out by the weights of its out-edges, divided by `total`; where that is 0 it shares nothing, and
    its x is lost. After a round that changed x by less than `tolerance` in sum the next superstep changes nothing.
    """

    damping: Param[float]
    iterations: Param[int] = at_least(1)
    tolerance: Param[float] = 0.0
    x: State[float] = 0.0
    base: State[float] = 0.0
    dangling: State[float] = 0.0
    total: State[float] = 1.0
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather shares, and share the new x out."""
        if self.superstep > 1 and self.change < self.tolerance:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            x = self.damping * (sum(messages) + self.lost * self.dangling) + self.base
            self.change += abs(x - self.x)
            self.x = x
        if self.superstep >= self.iterations:
            self.vote_to_halt()
        elif self.total == 0.0:
            self.lost += self.x
        else:
            share = self.x / self.total
            for edge in self.out_edges:
                self.send(edge, share * edge.weight)
