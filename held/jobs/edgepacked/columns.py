"""Milliseconds of a superstep along packed edges of a GPU's host, by how many columns of an edge messages read."""

import pathlib
import sys
import tempfile

import numpy as np

import sigps
from sigps import State, Vertex
from sigps.graph.formats.packed_store import save_packed


class One(Vertex, message=float):
    heard: State[float] = 0.0

    def compute(self, messages):
        self.heard = sum(messages)
        if self.superstep < 5:
            for edge in self.out_edges:
                self.send(edge, edge.cost)
        else:
            self.vote_to_halt()


class Two(Vertex, message=float):
    heard: State[float] = 0.0

    def compute(self, messages):
        self.heard = sum(messages)
        if self.superstep < 5:
            for edge in self.out_edges:
                self.send(edge, edge.cost + edge.time)
        else:
            self.vote_to_halt()


class Cheapest(Vertex, message=float):
    least: State[float] = sigps.inf

    def compute(self, messages):
        best = 0.0 if self.superstep == 0 and self.id == 0 else min(messages, default=sigps.inf)
        if best < self.least:
            self.least = best
            for edge in self.out_edges:
                self.send(edge, best + edge.cost + edge.time)
        self.vote_to_halt()


scale = int(sys.argv[1])
made = sigps.generate("rmat", scale=scale, seed=2, directed=True).in_edges()
sources = made.sources.astype(np.int64)
targets = np.repeat(np.arange(made.offsets.size - 1), np.diff(made.offsets).astype(np.int64))
drawn = np.random.default_rng(1)
columns = {"cost": drawn.integers(1, 90, sources.size), "time": drawn.integers(0, 200, sources.size)}
graph = sigps.Graph.from_edges(sources, targets, columns=columns, directed=False)
folder = pathlib.Path(tempfile.mkdtemp())
save_packed(graph, folder / "store", order="given")
for device in ("cuda", "packed"):
    for program in (One(), Two(), Cheapest()):
        used = graph if device == "cuda" else sigps.load(folder / "store")
        options = {"device": "cuda"} | ({} if device == "cuda" else {"stream": "always"})
        for _ in range(2):
            found = sigps.run(program, used, **options)
        ms = [1e3 * s.seconds for s in found.stats]
        read = sum(s.bytes_read for s in found.stats) / 1e6
        print(f"{type(program).__name__:10} {device:8} superstep 1 {ms[min(1, len(ms) - 1)]:8.2f} ms, all {sum(ms):8.2f}, read {read:8.1f} MB", flush=True)
