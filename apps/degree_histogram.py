"""Degree histogram: how many vertices have so many out-edges, counted in classes that double.

All vertices count into one aggregator, a vector. Bucket 0 holds the vertices without out-edges, and bucket b those
with 2^(b-1) to 2^b - 1 of them, so 64 buckets are enough for any degree. 1 superstep.

    histogram[b] = |{ v : bits(out_degree(v)) = b }|,   bits(0) = 0,  bits(d) = 1 + floor(log2 d)

Parallel edges count each; of an undirected graph the degree is that of both directions.

A. Clauset, C. R. Shalizi, M. E. J. Newman, "Power-law distributions in empirical data", SIAM Review 51, 2009, for
why a degree distribution is read in logarithmic classes.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 2])
>>> sigps.run(DegreeHistogram(), graph).aggregators["histogram"][:4].tolist()
[2, 1, 1, 0]
"""

from sigps import Aggregator, Vector, Vertex


class DegreeHistogram(Vertex):
    """The aggregator `histogram` has the number of vertices in each bucket."""

    histogram = Aggregator.sum(Vector[int, 64], persistent=True)

    def compute(self, messages):
        """Count this vertex in its bucket."""
        self.histogram[self.out_degree.bit_length()] += 1
        self.vote_to_halt()
