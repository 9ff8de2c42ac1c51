"""Hubs and authorities: good hubs point at good authorities, and good authorities are pointed at by good hubs.

In odd supersteps authorities add up the hubs that point at them and send that back, in even ones hubs add up what came
back. A phase's total is known one superstep later, so unscaled values travel and the receiver divides; in the end
hubs add up to 1, and so do authorities.

    authority(v) ~ sum { hub(u) : (u, v) an edge },   hub(u) ~ sum { authority(v) : (u, v) an edge }

2 * `iterations` + 2 supersteps, each edge crossed once in each but the last two.

J. M. Kleinberg, "Authoritative sources in a hyperlinked environment", Journal of the ACM 46, 1999.

>>> import sigps
>>> result = sigps.run(HITS(), sigps.Graph.from_edges([0, 0, 1], [1, 2, 2]))
>>> result["hub"].round(4).tolist(), result["authority"].round(4).tolist()
([0.618, 0.382, 0.0], [0.0, 0.382, 0.618])
"""

from sigps import Aggregator, Param, State, Vertex, at_least


class HITS(Vertex, message=float, both_ways=True):
    """Scores after `iterations` rounds; 0 everywhere in a graph without edges."""

    iterations: Param[int] = at_least(0, default=20)
    hub: State[float] = 1.0
    authority: State[float] = 0.0
    hubs = Aggregator.sum(float)
    authorities = Aggregator.sum(float)

    def compute(self, messages):
        """Scale what the last phase gave, and add up what came from the other side."""
        received = sum(messages)
        is_even = self.superstep % 2 == 0
        total = (self.authorities if is_even else self.hubs) or 1.0  # without edges it is 0
        goes_on = self.superstep < 2 * self.iterations
        if is_even:
            if self.superstep > 0:
                self.authority /= total
                self.hub = received / total
            self.hubs += self.hub
        else:
            self.hub /= total
            if goes_on:
                self.authority = received / total
                self.authorities += self.authority
            else:
                self.vote_to_halt()
        if goes_on:
            score = self.hub if is_even else self.authority
            for edge in self.out_edges:
                if edge.leads_out if self.superstep % 2 == 0 else edge.leads_in:
                    self.send(edge, score)
