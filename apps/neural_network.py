"""Sweeps of a neural network: vertices are neurons, and the weights of edges excite or inhibit.

In each sweep all neurons add up what comes in and answer with a number between -1 and 1. One of them is held at 1, and
the others begin at 0.

    x_{i+1}(v) = tanh(bias + sum { weight(u, v) x_i(u) : (u, v) an edge }),   x_i(source) = 1

Edges of an undirected graph lead both ways, as in Hopfield's networks. His neurons change little by little; here all
change at once, so that activities may swing for ever. `steps` + 1 supersteps.

J. J. Hopfield, "Neurons with graded response have collective computational properties like those of two-state neurons",
Proceedings of the National Academy of Sciences 81, 1984.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 1], weights=[1.0, 0.5, -2.0, 1.0])
>>> sigps.run(NeuralNetwork(source=0, steps=2), graph)["activity"].round(4).tolist()
[1.0, 0.8981, -0.7712]
"""

import math

from sigps import Param, State, Vertex, VertexId, at_least, finite


class NeuralNetwork(Vertex, message=float):
    """The activity of each neuron after `steps` sweeps."""

    source: Param[VertexId]
    bias: Param[float] = finite(default=0.0)
    steps: Param[int] = at_least(0, default=20)
    activity: State[float] = 0.0

    def compute(self, messages):
        """Answer what came in, and pass the answer on."""
        if self.id == self.source:
            self.activity = 1.0
        elif self.superstep > 0:
            self.activity = math.tanh(self.bias + sum(messages))
        if self.superstep < self.steps:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.activity)
        else:
            self.vote_to_halt()
