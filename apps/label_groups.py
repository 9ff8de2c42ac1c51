"""Label groups: labels propagate until they rest, and what hangs together under one label is a group.

Vertices with one label may be connected by no path within it, so labels alone are no groups. When `LabelPropagation`
(whose page says how labels are found) has come to rest, vertices send each other their labels, and the smallest id
spreads along edges inside. `inside` counts a vertex's edges into its own group.

    group(v) = min { u : a path of vertices with label(v) connects u and v }
    inside(v) = |{ (u, v) an edge : u != v, label(u) = label(v) }|
    density(g) = sum { inside(v) : v in g } / (n (n - 1)),   which is 2 m / (n (n - 1)) for m edges inside

The graph is taken as undirected; parallel edges count each, loops do not. After the supersteps of `LabelPropagation`
come two, and one for each edge that a smallest id goes along.

U. N. Raghavan, R. Albert, S. Kumara, "Near linear time algorithm to detect community structures in large-scale
networks", Physical Review E 76, 2007.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = sigps.run(LabelGroups(), graph)
>>> result["group"].tolist(), result["inside"].tolist()
([1, 1, 1, 4, 4, 4], [2, 2, 2, 2, 2, 2])
"""

from sigps import EdgeState, Shared, State, VertexId
from sigps.apps.label_propagation import LabelPropagation


class LabelGroups(LabelPropagation):
    """The label of each vertex, the smallest id of its group, and how many of its edges are inside the group."""

    group: State[VertexId] = -1
    inside: State[int] = 0
    told: EdgeState[VertexId] = -1
    lowest: EdgeState[VertexId] = -1
    begins: Shared[int] = 0
    propagate = LabelPropagation.compute

    def compute(self, messages):
        """Propagate labels until they rest; then send them, and take a smaller id of the same label."""
        if self.begins == 0:
            self.propagate(messages)
        else:
            lowest = self.id
            if self.superstep > self.begins:
                self.inside = 0
                for edge in self.out_edges:
                    if edge.target != self.id and edge.reverse.told == self.label:
                        self.inside += 1
                        lowest = min(lowest, edge.reverse.lowest)
            if self.superstep == self.begins or lowest < self.group:
                self.group = lowest
                for edge in self.out_edges:
                    edge.told, edge.lowest = self.label, lowest
                self.send_to_neighbors(self.label)  # to wake them
            self.vote_to_halt()

    def next_phase(self):
        """Go on to the groups when labels rest."""
        if self.begins == 0:
            self.begins = self.superstep + 1
            self.wake_all()
