"""Programs that send direct messages, walk their edges, or go along none."""

import equality_programs
import send_programs
import vector_programs
from keyed_programs import KEYED

import sigps
from sigps import State, Vertex
from sigps.apps import Bridges, DegreeHistogram, HeatDiffusion, LouvainRound, OutDegree, SemiClustering


class Around(Vertex):
    """Walks its edges, and nobody sends anything."""

    sum: State[int] = 0
    heaviest: State[float] = 0.0

    def compute(self, messages):
        for edge in self.out_edges:
            self.sum += edge.target * (self.superstep + 1)
            if edge.weight > self.heaviest:
                self.heaviest = edge.weight
        if self.superstep >= self.id % 3:
            self.vote_to_halt()


class Noted(Vertex, message=int):
    """Some edges bring a message, which nobody reads."""

    seen: State[int] = 0

    def compute(self, messages):
        self.seen += 1
        if self.superstep < 3 and self.id % 3 != self.superstep:
            for edge in self.out_edges:
                if edge.weight > 0.5 and edge.target % 2 == 1:
                    self.send(edge, 1)
        self.vote_to_halt()


UNREAD: dict[str, sigps.Vertex] = {"all edges": send_programs.Retiring(), "some edges": Noted()}

WALKS: dict[str, sigps.Vertex] = {
    "lists": vector_programs.Relays(),
    "sorted": KEYED["orders"],
    "folds": vector_programs.Throws(),
    "weights": send_programs.TwoSends(),  # more messages than there is room for at first
    "phases": Bridges(),
    "silent": Around(),
    "records": HeatDiffusion(source=1, rate=0.3),
    "listed records": SemiClustering(iterations=2),
    "sorted records": LouvainRound(),
    "jump": equality_programs.PROGRAMS["jump"],
}

ALONG_NO_EDGES: list[sigps.Vertex] = [
    send_programs.Flood(),
    send_programs.FloodSum(),
    send_programs.Postman(),
    send_programs.Paced(),
    send_programs.Census(),
    DegreeHistogram(),
    OutDegree(),
]
