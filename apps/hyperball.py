"""HyperBall: how many vertices each vertex is reached from in so many steps, estimated for all vertices at once.

Each vertex keeps a counter of 256 bytes (HyperLogLog) of those that reach it in t steps. Counters of unions
are maxima, byte by byte, so one superstep makes all the balls of radius t + 1 from those of radius t.

    ball_0(v) = {v},   ball_{t+1}(v) = union { ball_t(u) : u = v, or (u, v) an edge }
    harmonic(v) = sum { (|ball_t(v)| - |ball_{t-1}(v)|) / t : t > 0 },   about sum { 1 / distance(u, v) : u != v }

An estimate of a ball's size has a relative standard error of 1.04 / sqrt(256) = 6.5 %. The aggregator `pairs`
has the number of pairs at each distance from 0 to 62, those farther apart in the last place; its running sum
is the neighbourhood function. `effective_diameter` finds within how many steps a share of all connected pairs are,
between whole steps on a straight line, and infinite beyond 62. Supersteps are as many as the longest shortest path
has edges, and two.

P. Flajolet, E. Fusy, O. Gandouet, F. Meunier, "HyperLogLog", AofA 2007; P. Boldi, S. Vigna, "In-core
computation of geometric centralities with HyperBall", ICDMW 2013.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
>>> sigps.run(HyperBall(), graph)["size"].round().tolist()
[1.0, 2.0, 3.0, 4.0, 5.0]
>>> round(effective_diameter(graph, share=0.8).aggregators["effective_diameter"], 1)
2.0
"""

import math

import numpy as np

import sigps
from sigps import Aggregator, Param, State, Vector, Vertex
from sigps.apps.driving import Runs
from sigps.apps.hashing import hashed


class HyperBall(Vertex, message=Vector[np.uint8, 256]):
    """Counters, sizes of balls as they are in the end, and estimates of harmonic centrality."""

    seed: Param[int] = 0
    registers: State[Vector[np.uint8, 256]] = 0
    size: State[float] = 0.0
    harmonic: State[float] = 0.0
    pairs = Aggregator.sum(Vector[float, 64], persistent=True)

    def estimated(self):
        """Return about how many different vertices are in the counter."""
        size = 0.7213 / (1.0 + 1.079 / 256.0) * 256.0 * 256.0 / sum(2.0**-self.registers)
        empty = sum(self.registers == 0)
        return 256.0 * math.log(256.0 / empty) if size <= 640.0 and empty > 0 else size

    def compute(self, messages):
        """Unite the neighbours' counters with this one; if it grew, pass it on."""
        before = self.registers
        if self.superstep == 0:
            drawn = hashed(self.id, self.seed)
            rest = drawn >> 8 | 1 << 55
            self.registers[drawn & 255] = 1 + ((rest & -rest) - 1).bit_count()
        for m in messages:
            self.registers = np.maximum(self.registers, m)
        if any(self.registers != before):
            size = self.estimated()
            self.pairs[min(self.superstep, 63)] += size - self.size
            if self.superstep > 0:
                self.harmonic += (size - self.size) / self.superstep
            self.size = size
            self.send_to_neighbors(self.registers)
        self.vote_to_halt()


def effective_diameter(graph, share=0.9, seed=0, **options):
    """Return `size` and `harmonic` of `HyperBall`, with `neighbourhood` [63] and `effective_diameter` as aggregators.

    `options` are those of `sigps.run`. Collective; every rank has the whole result.
    """
    if not 0.0 < share <= 1.0:
        raise sigps.ConfigError(f"share={share!r} must be above 0, and at most 1: of all connected pairs")
    runs = Runs(options)
    pairs = runs.run(HyperBall(seed=seed), graph).aggregators["pairs"]
    function = np.cumsum(pairs)
    least, within = share * function[-1], function[:63]
    at = int(np.searchsorted(within, least))
    if 0 < at < 63:
        steps = at - 1 + (least - within[at - 1]) / (within[at] - within[at - 1])
    else:
        steps = 0.0 if at == 0 else math.inf
    fields = {name: runs.field(name, graph) for name in ("size", "harmonic")}
    return runs.as_one(graph, fields, {"neighbourhood": within, "effective_diameter": float(steps)})
