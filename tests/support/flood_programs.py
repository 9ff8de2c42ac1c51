"""What several tests share of `test_messages`."""

from __future__ import annotations

from sigps import Param, State, Vertex


class Flood(Vertex, message=int):
    """Everybody writes `copies` letters to one vertex in turn: far more than there is room for at first."""

    copies: Param[int] = 50
    total: State[int] = 0
    letters: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.total = self.total + m if m >= 0 else self.total * m
            self.letters += 1
        if self.superstep < 3:
            for i in range(self.copies):
                self.send_to((self.id * 7 + i * 13 + self.superstep) % self.num_vertices, self.id + i)
        else:
            self.vote_to_halt()


class FloodSum(Vertex, message=int):
    """The same letters, of which only a sum is wanted, and an aggregator that sees who writes."""

    copies: Param[int] = 50
    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep < 3:
            for i in range(self.copies):
                self.send_to((self.id * 7 + i * 13 + self.superstep) % self.num_vertices, self.id + i)
        else:
            self.vote_to_halt()
