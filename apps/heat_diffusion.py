"""Heat diffusion: one vertex is hot, and heat flows along edges from the warmer end to the colder one.

Steps of the explicit Euler method for the heat equation of a graph. An edge's weight is its conductivity. The heat
adds up to 1 throughout; `rate` must be at most 1 over the largest sum of weights at a vertex, or it overshoots.

    heat_{i+1}(v) = heat_i(v) + rate * sum { weight(u, v) * (heat_i(u) - heat_i(v)) : (u, v) an edge }

The graph is taken as undirected. `steps` + 1 supersteps.

R. I. Kondor, J. Lafferty, "Diffusion kernels on graphs and other discrete input spaces", ICML 2002.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1], [1, 2], weights=[1.0, 2.0], directed=False)
>>> sigps.run(HeatDiffusion(source=0, rate=0.25, steps=2), graph)["heat"].tolist()
[0.625, 0.25, 0.125]
"""

from sigps import Param, State, Vertex, VertexId, at_least


class HeatDiffusion(Vertex, message=float, directed=False):
    """The heat at each vertex after `steps` steps, and the sum of the weights of its edges."""

    source: Param[VertexId]
    rate: Param[float] = at_least(0)
    steps: Param[int] = at_least(0, default=20)
    heat: State[float] = 0.0
    strength: State[float] = 0.0

    def compute(self, messages):
        """Take what flows in, less what flows out."""
        if self.superstep == 0:
            self.heat = 1.0 if self.id == self.source else 0.0
            self.strength = sum(edge.weight for edge in self.out_edges)
        else:
            self.heat += self.rate * (sum(messages) - self.strength * self.heat)
        if self.superstep < self.steps:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.heat)
        else:
            self.vote_to_halt()
