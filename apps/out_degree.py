"""Out-degree: how many edges leave each vertex. The smallest program there is.

How many vertices have each degree, the degree distribution, is what NumPy's `unique` counts in the result.

>>> import numpy as np
>>> import sigps
>>> result = sigps.run(OutDegree(), sigps.Graph.from_edges([0, 0, 1], [1, 2, 3]))
>>> result["degree"].tolist()
[2, 1, 0, 0]
>>> degrees, counts = np.unique(result["degree"], return_counts=True)
>>> degrees.tolist(), counts.tolist()
([0, 1, 2], [2, 1, 1])
"""

from sigps import State, Vertex


class OutDegree(Vertex):
    """The number of edges out of each vertex."""

    degree: State[int] = 0

    def compute(self, messages):
        """Note the degree, and halt."""
        self.degree = self.out_degree
        self.vote_to_halt()
