"""Capacities: a graph's edges as pairs of vertices with whole capacities both ways, and what flows on each edge."""

import math
from dataclasses import replace

import numpy as np

import sigps


class Capacities:
    """What the edges of this rank's rows can carry, in whole numbers of 2**-`exponent`; loops carry nothing.

    `most` is what the edges out of the source can carry, or those into the target, if that is less.
    """

    def __init__(self, graph, source, target, column="weight"):
        """Take the numbers of two vertices, and the name of a column; None, or one that is not there: ones.

        >>> graph = sigps.Graph.from_edges([0, 1, 0], [1, 0, 1], columns={"width": [0.5, 2.0, 0.25]})
        >>> found = Capacities(graph, 0, 1, "width")
        >>> float(found.in_units(found.most)), found.in_units(found.pairs().columns["down"]).tolist()
        (0.75, [0.75, 0.75])
        >>> [values.tolist() for values in found.flows(np.array([found.most]))]
        [[0, 0, 1], [1, 1, 0], [0.5, 0.25, 0.0]]
        """
        self.graph, self.exponent = graph, 0
        own = np.arange(graph.first_row, graph.first_row + graph.num_rows)
        self.starts = starts = np.repeat(own, graph.out_degrees())
        self.ends = ends = graph.targets.astype(np.int64)
        given = graph.columns.get(column, np.ones(starts.size, np.int64))
        is_first = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))[: starts.size]
        self.first = np.flatnonzero(is_first)
        self.parallel = np.diff(self.first, append=starts.size)
        num_parallel = max(graph.group.all_gather(int(self.parallel.max(initial=1))))
        is_loop = starts == ends
        leaves, enters = (starts == source) & ~is_loop, (ends == target) & ~is_loop
        if given.dtype.kind == "f":
            most = min(math.fsum(self.gathered(given[edges])) for edges in (leaves, enters))
            self.exponent = 60 - math.frexp(most * num_parallel)[1]
            scaled = np.ldexp(np.minimum(given, 2 * most).astype(float), self.exponent)
            whole = np.floor(scaled) if most > 0 else given > 0
        else:
            most = min(sum(self.gathered(given[edges]).tolist()) for edges in (leaves, enters))
            if (most + 1) * num_parallel >= 2**62:
                raise sigps.GraphError(
                    f"maximum_flow: {most} may flow, and {num_parallel} edges are parallel: whole capacities are exact "
                    "while that product is below 2**62. Take capacities as floats, or in a larger unit"
                )
            whole = np.minimum(given, most + 1)
        self.whole = np.where(is_loop, 0, whole).astype(np.int64)
        self.most = min(sum(self.gathered(self.whole[edges]).tolist()) for edges in (leaves, enters))

    def gathered(self, values):
        """Return all ranks' values, in the order of edges."""
        return np.concatenate(self.graph.group.all_gather_array(values))

    def in_units(self, whole):
        """Return whole numbers in the unit of the graph's capacities."""
        return whole if self.exponent == 0 else np.ldexp(np.asarray(whole, dtype=float), -self.exponent)

    def pairs(self):
        """Return an undirected graph whose edges carry `up`, from smaller to greater number, and `down`. Collective."""
        starts, ends = self.starts[self.first], self.ends[self.first]
        total = np.add.reduceat(self.whole, self.first) if self.first.size else self.whole
        total = np.minimum(
            total, self.most + 1
        )  # then it is full in no minimum cut, as what carries more is in none
        own = np.arange(self.graph.first_row, self.graph.first_row + self.graph.num_rows)
        given = {"directed": False, "vertices": own, "duplicates": "sum", "self_loops": "drop", "local": True}
        up, down = (
            sigps.Graph.from_edges(starts, ends, np.where(leads, total, 0), **given, group=self.graph.group)
            for leads in (starts < ends, starts > ends)
        )
        columns = {"up": up.columns["weight"], "down": down.columns["weight"]}
        return replace(up, columns=columns, by_target=None)

    def flows(self, net):
        """Return both ends and the flow of each edge, on every rank; of an undirected one from the smaller. Collective.

        `net` has what flows in each pair from the smaller number to the greater, ascending. Parallel edges are filled
        one after another.
        """
        starts, ends, n = self.starts[self.first], self.ends[self.first], self.graph.num_vertices
        keys = np.minimum(starts, ends) * n + np.maximum(starts, ends)
        is_pair = starts != ends
        known = np.unique(self.gathered(keys[is_pair]))
        through = np.zeros(keys.size, np.int64)
        through[is_pair] = net[np.searchsorted(known, keys[is_pair])]
        through = np.where(starts < ends, through, -through)
        is_kept = np.ones(self.starts.size, bool) if self.graph.directed else self.starts <= self.ends
        if self.graph.directed:
            through = np.maximum(through, 0)
        before = np.cumsum(self.whole) - self.whole
        before -= np.repeat(before[self.first], self.parallel)
        through = np.repeat(through, self.parallel)
        flow = np.sign(through) * np.clip(np.abs(through) - before, 0, self.whole)
        return [self.gathered(values[is_kept]) for values in (self.starts, self.ends, self.in_units(flow))]
