"""Maximum flow from one vertex to another, and the minimum cut between them: push-relabel in supersteps.

Vertices hold excess, which begins at the source, and heights, which bound the distance to the target from below:

    room(u, v) = capacity(u, v) - flow(u, v) + flow(v, u),   height(u) <= height(v) + 1  wherever room(u, v) > 0
    push:  move min(excess(u), room(u, v)) from u to v,  where height(u) = height(v) + 1
    lift:  height(u) = 1 + min { height(v) : room(u, v) > 0, or v may push to u at this time }

A vertex with excess pushes, and lifts where some is left. All do so at once, from what was so before the superstep: of
two neighbours only the higher one can push, and since a lift heeds it, the bound holds. Now and then a search from the
target makes the bounds exact, and pushes go on for as many supersteps as it took. Who cannot reach the target any more
is on the source's side of the minimum cut. In the end what has not arrived flows back to the source, in the same way.

Whole capacities are exact. Others are rounded down to multiples of a power of 2, at most 2**-59 of what can leave the
source or enter the target, times the parallel edges; for these flows are exact, and rounded once to floats. At most
O(n) lifts of each vertex, and O(n^2) supersteps; on most graphs far fewer.

A. V. Goldberg, R. E. Tarjan, "A new approach to the maximum-flow problem", Journal of the ACM 35, 1988; B. V.
Cherkassky, A. V. Goldberg, "On implementing the push-relabel method for the maximum flow problem", Algorithmica 19,
1997, for searches.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 2, 3], [2, 3, 3, 4, 4], weights=[3, 2, 2, 1, 9])
>>> result = maximum_flow(graph, source=1, target=4)
>>> result.aggregators["flow"], result.edges["flow"].tolist(), result["is_source_side"].tolist()
(5, [3, 2, 2, 1, 4], [True, True, False, False])
"""

import sigps
from sigps import Aggregator, EdgeState, Param, Shared, State, Vertex, VertexId, requires, wrapping
from sigps.apps.arcs import number_of, weighted_by
from sigps.apps.capacities import Capacities
from sigps.apps.driving import Runs

CLEAR, SEARCH, BEGIN, PUSH, END = range(5)


def room(capacity, flow, back):
    """Return how much more an edge can take; flows are counted modulo 2**64, the difference is exact."""
    return wrapping(capacity - flow + back)


class MaximumFlow(Vertex, message=int, directed=False):
    """The excess of each vertex, at last that of the target is the flow; `initial` has that of the source.

    Edges have columns: `up`, the capacity from the smaller id to the greater, and `down`, that back.
    """

    source: Param[VertexId]
    target: Param[VertexId]
    excess: State[int] = 0
    height: State[int] = 0
    is_source_side: State[bool] = False
    flow: EdgeState[int] = 0  # all that was pushed along it; in the end less what came back
    level: EdgeState[int] = 0  # the height of the end that keeps it
    phase: Shared[int] = CLEAR
    begins: Shared[int] = 0
    ends: Shared[int] = 0
    is_returning: Shared[bool] = False
    goes_on = Aggregator.any()

    @requires("source and target are different vertices")
    def has_two_ends(self):
        """Tell whether they differ."""
        return self.source != self.target

    def compute(self, messages):
        """Do what the phase asks for; a message is excess, or a search, which brings 0."""
        self.excess += sum(messages)
        if self.phase == END:
            for edge in self.out_edges:
                edge.flow = wrapping(edge.flow - edge.reverse.flow)
        elif self.phase == CLEAR or (self.phase == SEARCH and messages):
            self.search()
        elif self.can_push():
            self.push()
        if self.phase == BEGIN and not self.is_returning:
            self.is_source_side = self.height == self.num_vertices
        if self.can_push():
            self.goes_on += True
        else:
            self.vote_to_halt()

    def can_push(self):
        """Tell whether there is excess here that can reach the target, or on the way back the source."""
        is_between = self.phase >= BEGIN and 0 < self.height < self.num_vertices
        return is_between and self.excess > 0 and self.id != self.target

    def search(self):
        """Forget the height; or learn it when the search comes here, and pass the search on."""
        height = min(self.height, self.superstep - self.begins)
        if self.phase == CLEAR:
            goal = self.source if self.is_returning else self.target
            height = 0 if self.id == goal else self.num_vertices
        if self.phase == CLEAR or height < self.height:
            self.height = height
            for edge in self.out_edges:
                edge.level = height
                into = edge.down if self.id < edge.target else edge.up
                if height < self.num_vertices and room(into, edge.reverse.flow, edge.flow) > 0:
                    self.send(edge, 0)
                    self.goes_on += True

    def push(self):
        """Push excess one step down; lift this vertex where some is left."""
        lowest = self.num_vertices - 1
        for edge in self.out_edges:
            left = room(edge.up if self.id < edge.target else edge.down, edge.flow, edge.reverse.flow)
            back, level = edge.up + edge.down - left, edge.reverse.level
            amount = min(self.excess, left) if level == self.height - 1 else 0
            if amount > 0:
                edge.flow = wrapping(edge.flow + amount)
                self.excess -= amount
                self.send(edge, amount)
                self.goes_on += True
            if left > amount or (back > 0 and level == self.height + 1):
                lowest = min(lowest, level)
        if self.excess > 0:
            self.height = lowest + 1
            for edge in self.out_edges:
                edge.level = self.height

    def master(self):
        """Search, push for as long, and so on; turn back to the source when nothing more can arrive."""
        before = self.phase
        if before == CLEAR:
            self.begins = self.superstep
        if before <= SEARCH:
            self.phase = SEARCH if self.goes_on else BEGIN
        elif before == BEGIN and self.goes_on:
            self.phase, self.ends = PUSH, 2 * self.superstep - self.begins
        elif not self.goes_on and self.is_returning:
            self.phase = END
        elif not self.goes_on or self.superstep >= self.ends:
            self.phase, self.is_returning = CLEAR, self.is_returning or before == BEGIN
        if self.phase != before and self.phase in (CLEAR, BEGIN, END):
            self.wake_all()


def maximum_flow(graph, source, target, capacity="weight", **options):
    """Return which vertices are on the source's side of the minimum cut, the `flow`, and of each edge its part.

    `capacity` names the column of capacities, which are not negative; None: 1 each, as where there are no weights. An
    undirected edge carries either way: its flow is positive from the smaller id to the greater. Parallel edges add up;
    of two that lead to and fro one is used. `options` are those of `sigps.run`. Collective; every rank has the result.
    """
    given = graph if capacity is None else weighted_by(graph, capacity, "maximum_flow(capacity=)", least=0)
    first, last = (
        number_of(graph, v, f"maximum_flow({name}=)") for name, v in (("source", source), ("target", target))
    )
    if first == last:
        raise sigps.ConfigError(
            f"maximum_flow: source={source!r} and target={target!r} must be different vertices"
        )
    program, runs = MaximumFlow(source=first, target=last), Runs(options)
    capacities = Capacities(given, first, last, capacity and "weight")
    result = runs.run(program, capacities.pairs(), initial={"excess": {first: capacities.most}})
    if result.reason != "converged":
        raise sigps.ConfigError(
            "maximum_flow: max_supersteps ended the run before all had flowed; leave it out"
        )
    net = runs.gathered(result.edges["flow"][: 0 if graph.group.rank else None], graph)
    *ends, flow = capacities.flows(net)
    arrived = capacities.in_units(runs.field("excess", graph)[last]).item()
    side = runs.field("is_source_side", graph)
    return runs.as_one(graph, {"is_source_side": side}, {"flow": arrived}, edges=(*ends, {"flow": flow}))
