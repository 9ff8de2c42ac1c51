"""Out-degree: how many edges leave each vertex. The smallest program there is.

>>> import sigps
>>> sigps.run(OutDegree(), sigps.Graph.from_edges([0, 0, 1], [1, 2, 2]))["degree"].tolist()
[2, 1, 0]
"""

from sigps import State, Vertex


class OutDegree(Vertex):
    """The number of edges out of each vertex."""

    degree: State[int] = 0

    def compute(self, messages):
        """Note the degree, and halt."""
        self.degree = self.out_degree
        self.vote_to_halt()
