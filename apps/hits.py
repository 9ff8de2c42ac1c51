"""Hubs and authorities: good hubs point at good authorities, and good authorities are pointed at by good hubs.

In odd supersteps authorities add up their hubs and answer them (a vertex sees no edges into it), in even ones hubs
add up the answers. A phase's total is known one superstep later, so unscaled values travel and the receiver
divides; in the end hubs add up to 1, and so do authorities.

    authority(v) ~ sum { hub(u) : (u, v) an edge },   hub(u) ~ sum { authority(v) : (u, v) an edge }

2 * `iterations` + 2 supersteps, each edge crossed once in each.

J. M. Kleinberg, "Authoritative sources in a hyperlinked environment", Journal of the ACM 46, 1999.

>>> import sigps
>>> result = sigps.run(HITS(), sigps.Graph.from_edges([0, 0, 1], [1, 2, 2]))
>>> result["hub"].round(4).tolist(), result["authority"].round(4).tolist()
([0.618, 0.382, 0.0], [0.0, 0.382, 0.618])
"""

from typing import NamedTuple

from sigps import Aggregator, Param, State, Vertex, VertexId


class Score(NamedTuple):
    """A vertex's unscaled score, and whom to answer."""

    value: float
    sender: VertexId


class HITS(Vertex, message=Score):
    """Scores after `iterations` rounds; 0 everywhere in a graph without edges."""

    iterations: Param[int] = 20
    hub: State[float] = 1.0
    authority: State[float] = 0.0
    hubs = Aggregator.sum(float)
    authorities = Aggregator.sum(float)

    def compute(self, messages):
        """Scale what the last phase gave, and add up what came from the other side."""
        received = sum(m.value for m in messages)
        total = (self.authorities if self.superstep % 2 == 0 else self.hubs) or 1.0  # without edges it is 0
        if self.superstep % 2 == 0:
            if self.superstep > 0:
                self.authority /= total
                self.hub = received / total
            self.hubs += self.hub
            self.send_to_neighbors(Score(self.hub, self.id))
        else:
            self.hub /= total
            if self.superstep < 2 * self.iterations:
                self.authority = received / total
                self.authorities += self.authority
                for m in messages:
                    self.send_to(m.sender, Score(self.authority, self.id))
            else:
                self.vote_to_halt()
