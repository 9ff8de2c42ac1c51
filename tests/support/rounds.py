"""What several tests share of `test_fused`."""

from __future__ import annotations

from sigps import Aggregator, Param, State, Vertex


class Rounds(Vertex, message=int):
    """Some stay active, some sleep, some retire; one total is kept from superstep to superstep, one is not."""

    rounds: Param[int] = 30
    heard: State[int] = 0
    seen: State[int] = 0
    ever = Aggregator.sum(int, persistent=True)
    most = Aggregator.max(int)

    def compute(self, messages):
        self.heard += sum(messages)
        self.seen = self.ever + self.most % 7
        self.ever += 1
        self.most += self.heard % 1000
        if (self.id + self.superstep) % 3 == 0 and self.superstep < self.rounds:
            self.send_to_neighbors(1 + self.superstep)
        if self.id % 5 == 4 and self.superstep > 3:
            self.retire()
        elif self.id % 5 > 0 or self.superstep >= self.rounds:
            self.vote_to_halt()
