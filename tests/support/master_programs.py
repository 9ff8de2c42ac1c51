"""Programs with a `master()`, written only for tests."""

from __future__ import annotations

from sigps import Aggregator, Param, Shared, State, Vertex


class Waves(Vertex, message=int):
    """Phases: labels spread until nothing changes, then the next wave begins with another rule."""

    waves: Param[int] = 3
    wave: Shared[int] = 0
    step: Shared[float] = 0.5
    first: Shared[bool] = True
    changed = Aggregator.any()
    reached: State[int] = 0
    weight: State[float] = 0.0

    def compute(self, messages):
        best = max(messages, default=-1)
        if self.first:
            best = (self.id % 23 * 7 + self.wave) % 23
        if self.first or best > self.reached:
            self.reached = best
            self.changed += True
            self.weight += self.step
            self.send_to_neighbors(best)
        self.vote_to_halt()

    def master(self):
        self.first = False
        if self.changed:
            return
        if self.wave + 1 == self.waves:
            self.stop()
            return
        self.wave += 1
        self.step = 1.0 / (1 + self.wave)
        self.first = True
        self.wake_all()


class Budget(Vertex, message=float):
    """Stops when the vertices have spent enough; nobody ever halts, some retire."""

    limit: Param[float] = 40.0
    spent = Aggregator.sum(float, persistent=True)
    rounds: Shared[int] = -5
    own: State[float] = 0.0

    def compute(self, messages):
        self.own += sum(messages) + 1.0
        self.spent += 0.5 * (1 + self.id % 3)
        if self.superstep == 1 and self.id % 4 == 1:
            self.retire()
        if self.rounds < -3:
            self.send_to_neighbors(0.25)

    def master(self):
        self.rounds = self.superstep - 4
        if self.spent > self.limit or self.superstep == 9:
            self.stop()


class Unheard(Vertex, message=int):
    """Odd ids retire at once; the others speak when they are woken, of which the odd hear nothing any more."""

    rounds: Shared[int] = 0
    spoke = Aggregator.sum(int)
    runs: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        got = len(messages)
        self.runs += 1
        self.heard += got
        if self.id % 2 == 1:
            self.retire()
        elif got == 0:
            self.spoke += 1
            self.send_to_neighbors(1)
        self.vote_to_halt()

    def master(self):
        if self.spoke == 0 and self.rounds < 2:
            self.rounds += 1
            self.wake_all()


class HeldBack(Vertex, message=int):
    """Sends along very heavy edges only, of which there are none."""

    spoke = Aggregator.sum(int)
    runs: State[int] = 0

    def compute(self, messages):
        self.runs += 1 + len(messages)
        self.spoke += 1
        for edge in self.out_edges:
            if edge.weight > 1e30:
                self.send(edge, 1)
        self.vote_to_halt()

    def master(self):
        if self.spoke == 0:
            self.wake_all()


class Gone(Vertex):
    """All retire, and the master wakes them in vain."""

    asked: Shared[int] = 0

    def compute(self, messages):
        self.retire()

    def master(self):
        self.asked += 1
        self.wake_all()


class Sleeper(Vertex):
    """Nobody sends; the master wakes everybody twice, then lets them sleep."""

    runs: State[int] = 0

    def compute(self, messages):
        self.runs += 1
        if self.superstep == 1 and self.id == 0:
            self.retire()
        self.vote_to_halt()

    def master(self):
        if self.superstep < 2:
            self.wake_all()


class Floods(Vertex, message=int):
    """Phases: labels spread until nobody has more to say; then the next flood begins, with other labels."""

    floods: Param[int] = 3
    flood: Shared[int] = 0
    begins: Shared[int] = 0
    steps: Shared[int] = 0
    told = Aggregator.sum(int)
    told_last: Shared[int] = -1
    reached: State[int] = 0
    changes: State[int] = 0

    def compute(self, messages):
        best = max(messages, default=-1)
        if self.superstep == self.begins:
            best = (self.id % 23 * 7 + self.flood) % 23
        if self.superstep == self.begins or best > self.reached:
            self.reached = best
            self.changes += 1 + self.flood
            self.told += 1
            self.send_to_neighbors(best)
        self.vote_to_halt()

    def next_phase(self):
        self.told_last = self.told
        self.steps += self.superstep + 1 - self.begins
        self.begins = self.superstep + 1
        self.flood += 1
        if self.flood < self.floods:
            self.wake_all()


class Fading(Vertex, message=int):
    """Those of two classes of ids speak when they are woken, and retire a phase later: to them nobody listens."""

    phase: Shared[int] = 0
    runs: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        got = len(messages)
        self.runs += 1
        self.heard += got
        if self.id % 3 == self.phase:
            self.retire()
        elif got == 0:
            self.send_to_neighbors(1)
        self.vote_to_halt()

    def next_phase(self):
        self.phase += 1
        if self.phase == 4:
            self.stop()
        self.wake_all()


class Letters(Vertex, message=int):
    """Phases whose messages go by name, some to a vertex that has retired."""

    round: Shared[int] = 0
    lowest = Aggregator.min(int)
    sum: State[int] = 0

    def compute(self, messages):
        self.sum += sum(messages) * (1 + self.round)
        self.lowest += self.id
        if self.superstep == 0 and self.id % 5 == 1:
            self.retire()
        elif not messages:
            for edge in self.out_edges:
                self.send_to(edge.target, 1)
                self.send_to(self.id, 10)
        self.vote_to_halt()

    def next_phase(self):
        if self.round < 2:
            self.round += 1
            self.wake_all()


class Vanished(Vertex):
    """All retire, and nobody wakes any more."""

    asked: Shared[int] = 0

    def compute(self, messages):
        self.retire()

    def next_phase(self):
        self.asked += 1
        self.wake_all()
