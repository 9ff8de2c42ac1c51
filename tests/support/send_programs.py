"""Programs that send, aggregate and halt in every way."""

import numpy as np

from sigps import Aggregator, Param, State, Vertex, VertexId, inf


class Filtered(Vertex, message=float):
    """A conditional send with locals and `continue` in the loop."""

    least: Param[float] = 1.0
    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        factor = self.value * 0.5
        if self.superstep < 3:
            for edge in self.out_edges:
                doubled = edge.weight * 2
                if doubled <= self.least * 3 and self.value > 0.0:
                    continue
                part = factor / doubled
                if part > 0.01:
                    part = part + self.superstep
                    self.send(edge, part)
        self.vote_to_halt()


class Alternatives(Vertex, message=float):
    """Exclusive branches: two send_to_neighbors of plain values share a record; two loops are told apart."""

    plain: Param[bool] = True
    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep >= 4:
            self.vote_to_halt()
            return
        if self.plain:
            if self.id % 2:
                self.send_to_neighbors(self.value)
            else:
                self.send_to_neighbors(-self.value / 2)
        elif self.superstep % 2 == self.id % 2:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.value)
        elif self.id < 3:
            for edge in self.out_edges:
                if edge.capacity > 4:
                    self.send(edge, edge.capacity - self.value)
        else:
            self.send_to_neighbors(1.0)


class OwnId(Vertex, message=float):
    """The sender's id in messages, alone and as an argument of methods that read the vertex."""

    value: State[float] = 2.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep == 0:
            self.send_to_neighbors(self.mixed(self.id) + self.id)
        elif self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.mixed(self.id + 1) * edge.weight - self.id / self.value)
        self.vote_to_halt()

    def mixed(self, number):
        return number * self.value


class TwoSends(Vertex, message=int):
    """Two messages on one edge, and a read of the superstep by what is reduced: the reader's."""

    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(m * self.superstep for m in messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.id)
                if edge.weight > 1.0:
                    self.send(edge, edge.target + 10)
            self.send_to_neighbors(1)
        self.vote_to_halt()


class Postman(Vertex, message=VertexId):
    """Messages to any vertex: all write to 9, which answers each sender."""

    heard: State[int] = 0
    answer: State[VertexId] = -1

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to(9, self.id)
        elif self.id == 9:
            for sender in messages:
                self.heard += 1
                if sender != self.id:
                    self.send_to(sender, self.id)
        else:
            self.answer = max(messages, default=-2)
        self.vote_to_halt()


class Forward(Vertex, message=int):
    """send_to inside a loop over the edges, from lists, with a break."""

    total: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.total += m
            if m > 40 and self.superstep < 4:
                self.send_to(m % 3, self.total)
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.target == 9:
                    break
                self.send_to(edge.target, edge.capacity * 10)
        self.vote_to_halt()


class Carried(Vertex, message=int):
    """A local that an iteration hands to the next: this loop is no edge function."""

    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep == 0:
            mark = 0
            for edge in self.out_edges:
                if edge.weight < 2.0:
                    mark = edge.capacity
                elif edge.target == 2:
                    mark += 1
                if edge.weight > 3.0:
                    self.send(edge, mark)
        self.vote_to_halt()


class Walk(Vertex, message=int):
    """Loops and reductions over the edges that send nothing; a record besides."""

    weight: State[float] = 0.0
    loops: State[int] = 0
    largest: State[int] = -1
    nearest: State[VertexId] = -1
    heavy: State[int] = 0
    code: State[int] = 0
    from_here: State[int] = 0

    def compute(self, messages):
        self.from_here += sum(messages)
        if self.superstep == 0:
            best = inf
            for edge in self.out_edges:
                if edge.target == self.id:
                    self.loops += 1
                    continue
                if edge.weight < best:
                    best = edge.weight
                    self.nearest = edge.target
            self.weight = sum(edge.weight for edge in self.out_edges)
            self.largest = max((e.capacity for e in self.out_edges if e.target != self.id), default=-3)
            self.heavy = sum(1 for edge in self.out_edges if edge.weight > best)
            light = any(edge.weight < 1.0 for edge in self.out_edges)
            wide = all(edge.capacity * self.scale() > 4 for edge in self.out_edges)
            self.code = 1 * light + 2 * wide + 4 * (min((e.target for e in self.out_edges), default=77) > 2)
            self.send_to_neighbors(self.id + 1)
        self.vote_to_halt()

    def scale(self):
        return 1 + self.loops


class WideValues(Vertex, message=np.uint64):
    """Integers that no float64 holds, in records and states."""

    key: State[np.uint64] = 2**63 + 1
    seen: State[np.uint64] = 0
    low: State[int] = 2**62 + 1
    lowest: State[int] = 0

    def compute(self, messages):
        self.seen = max(messages, default=0)
        self.lowest = min(self.low, 2**62 + 3)
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.weight > 0.75:
                    self.send(edge, self.key)
        self.vote_to_halt()


def farther(a, b):
    return a if abs(a) >= abs(b) else b


class Census(Vertex):
    """Every kind of aggregator, read one superstep later."""

    total = Aggregator.sum(int)
    mean = Aggregator.sum(np.float32)
    narrow = Aggregator.sum(np.int32)
    low = Aggregator.min(float)
    high = Aggregator.max(int)
    some = Aggregator.any()
    every = Aggregator.all()
    far = Aggregator.custom(farther, identity=0.0)
    kept = Aggregator.sum(int, persistent=True)
    ever = Aggregator.max(float, persistent=True)
    seen: State[float] = 0.0
    flags: State[int] = 0
    kept_seen: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1:
            self.seen = self.total + self.mean + self.narrow + self.low + self.high + self.far
            self.flags = 1 * self.some + 2 * self.every
        self.kept_seen = self.kept * 100 + self.superstep
        so_far = self.kept
        so_far += 1
        self.kept += 1
        self.kept += so_far - self.kept
        self.ever += -1.0 * self.superstep
        if self.superstep == 0 and self.out_degree > 0:
            self.total += self.id
            self.mean += 0.5
            self.narrow += self.id > 0
            self.low += self.id - 1
            self.high += self.id
            self.some += self.id == 2
            self.every += self.id < 3
            self.far += self.id - 2.0
        if self.superstep == 2:
            self.vote_to_halt()


class Retiring(Vertex, message=int):
    """Some halt for good, some wake again, and what is assigned keeps its field's type."""

    seen: State[int] = 0
    whole: State[int] = 0

    def compute(self, messages):
        self.seen += 1
        self.whole = int(self.id / 2 + 0.5)
        if self.whole * 2 == self.id + 1:
            self.seen += 10
        if self.superstep < 4:
            self.send_to_neighbors(1)
        if self.id == 3 and self.superstep == 1:
            self.retire()
        self.vote_to_halt()


class Simmer(Vertex, message=float):
    """A vertex that is reached sends at once, and stays active for some supersteps more."""

    left: State[int] = -1
    heat: State[float] = 0.0
    heard: State[int] = 0

    def compute(self, messages):
        best = max(messages, default=-1.0)
        if self.superstep == 0 and self.id == 0:
            best = 5.0
        if best > self.heat:
            self.heat = best
            self.left = 3
            for edge in self.out_edges:
                self.send(edge, best + edge.weight / 1024 - 0.25)
        elif self.left > 0:
            self.left -= 1
            self.heard += 1
        if self.left <= 0 or self.id % 2 == 0:
            self.vote_to_halt()


class Paced(Vertex, message=int):
    """Every vertex is active for a while, and none sends."""

    turns: Param[int] = 3
    count: State[int] = 0

    def compute(self, messages):
        self.count += 1 + sum(messages)
        if self.superstep == self.turns:
            self.vote_to_halt()


class Flood(Vertex, message=int):
    """Every vertex sends `copies` direct messages to others by id: far more than the first capacity."""

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
    """The same direct messages, of which only a sum is read."""

    copies: Param[int] = 50
    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep < 3:
            for i in range(self.copies):
                self.send_to((self.id * 7 + i * 13 + self.superstep) % self.num_vertices, self.id + i)
        else:
            self.vote_to_halt()


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
