"""Programs that read messages one by one, or go through edges: what a team of threads shares, and what one does.

Where messages are listed, each reads a message beside its own state, so that nothing combines.
"""

from __future__ import annotations

from cells import program_of

from sigps import Vertex

__all__ = ["ALONE", "SHARED", "WALKED", "listed_program", "walking_program"]

_OFFER = """
class Offer(NamedTuple):
    price: float
    seller: VertexId
"""

SHARED = {
    "sum": "self.x = sum((m.price * self.x for m in messages if m.seller > self.id), 3.0)",
    "least": "self.x = min((m.price + self.x for m in messages), default=7.0)",
    "least pair": "if messages:\n    self.x, self.n = min((m.price * self.x, m.seller) for m in messages)",
    "most by key": (
        "if messages:\n"
        "    best = max(messages, key=lambda m: m.price * self.x)\n    self.x, self.n = best.price, best.seller"
    ),
    "least by key, of some": (
        "best = min((m for m in messages if m.seller != self.n), key=lambda m: (m.price * self.x, m.seller), "
        "default=Offer(5.0, -1))\nself.n = best.seller"
    ),
    "any and all": (
        "self.n = 2 * any(m.price > self.x for m in messages) + all(m.price >= self.x for m in messages)"
    ),
    "count": "self.n = sum(1 for m in messages if m.price > self.x) * 100 + len(messages)",
    "a count on one path": (
        "for m in messages:\n    if m.price > self.x:\n        self.total += 1\nself.n = len(messages)"
    ),
    "accumulators": (
        "low, hit, n = inf, False, 0\n"
        "for m in messages:\n"
        "    if m.price * self.x < low:\n        low = m.price * self.x\n"
        "    hit = hit or m.seller > self.id\n    n += m.seller\n"
        "self.x, self.n = low if low < inf else self.x, n + 1000 * hit"
    ),
    "least and greatest pairs": (
        "low, high = (inf, 0), (-1.0, 0)\n"
        "for m in messages:\n"
        "    low = min(low, (m.price * self.x, m.seller))\n"
        "    pair = m.price * self.x, m.seller\n"
        "    if pair > high:\n        high = pair\n"
        "if messages:\n    self.x, self.n = low[0] + high[0], 10_000 * low[1] + high[1]"
    ),
    "a local of two loops": (
        "n = 0\n"
        "for m in messages:\n    other = m.seller + self.id\n    n = max(n, other)\n"
        "for edge in self.out_edges:\n    other = edge.target\n    n = max(n, other)\n"
        "self.n = n if self.x > 0 else 0"
    ),
    "aggregators": (
        "for m in messages:\n"
        "    self.total += m.seller\n    self.most += m.price * self.x\n    self.hit += m.price > self.x"
    ),
}
"""Bodies of compute() in supersteps after the first, by what is shared in them."""

ALONE = {
    "the last one": "for m in messages:\n    self.x = m.price * 2 + self.x",
    "until one": "for m in messages:\n    if m.price > self.x:\n        self.n = m.seller\n        break",
    "in order": "for m in messages:\n    self.n = (self.n * 3 + m.seller) % 1000",
}
"""Bodies in which an iteration depends on the one before."""


WALKED = {
    "sum": "self.x += sum(edge.weight for edge in self.out_edges if edge.target > self.n % 50)",
    "least and its weight": (
        "low, at = inf, -1\n"
        "for edge in self.out_edges:\n    low = min(low, edge.weight + self.x)\n    at = max(at, edge.target)\n"
        "self.x, self.n = low if low < inf else self.x, at + self.n"
    ),
    "least pair, and marks": (
        "low = inf, 0\n"
        "for edge in self.out_edges:\n"
        "    if edge.target % 3 == self.id % 3:\n        edge.mark += 1\n"
        "    else:\n        low = min(low, (edge.weight, -edge.target))\n"
        "self.x, self.n = low[0] if low[0] < inf else self.x, low[1] + self.n"
    ),
    "edges are marked": (
        "for edge in self.out_edges:\n"
        "    edge.mark = edge.mark + self.n + edge.target % 3\n    self.total += edge.mark\n"
    ),
    "the other ends' marks": (
        "hit = False\n"
        "for edge in self.out_edges:\n"
        "    edge.mark = self.n % 5 + edge.reverse.mark\n    hit = hit or edge.mark > 6\n"
        "self.n += hit\nself.hit += hit"
    ),
    "a count after one": (
        "self.n += sum(1 for edge in self.out_edges if edge.weight > 3.0)\n"
        "self.x = max((edge.weight for edge in self.out_edges if edge.target != self.n), default=0.5)"
    ),
}
"""Bodies of compute() that go through edges, where messages are added up."""


def walking_program(body: str, *, is_direct: bool = False) -> Vertex:
    """Return a program of four supersteps whose messages are combined, and whose compute() goes through edges.

    With `is_direct` it sends to the other ends of the edges one by one.
    """
    text = f"self.n += sum(messages)\n{body}\n"
    text += "if self.superstep < 3 and (self.superstep == 0 or self.n % 3 < 2):\n"
    each = "for edge in self.out_edges:\n        self.send_to(edge.target, 1 + self.n % 4)"
    text += f"    {each if is_direct else 'self.send_to_neighbors(1 + self.n % 4)'}\nself.vote_to_halt()"
    marks = "mark: EdgeState[int] = 1\n" if ".mark" in body else ""
    fields = f"n: State[int] = 0\n{marks}total = Aggregator.sum(int)\nhit = Aggregator.any()\n"
    return program_of(text, fields, message="message=int, directed=False")


def listed_program(body: str, *, sends: bool = False, sums: bool = True) -> Vertex:
    """Return a program whose messages are listed.

    Args:
        body: What compute() does with messages after superstep 0, in which all send what they have.
        sends: Whether messages are direct: then each of them is also answered.
        sums: Whether superstep 2 ends with a sum over messages, which a team shares.
    """
    begin = "for edge in self.out_edges:\n        self.send_to(edge.target, Offer(self.x, self.id))"
    answer = (
        "\nif self.superstep == 1:\n    for m in messages:\n        self.send_to(m.seller, Offer(self.x, m.seller))\n"
        "    self.send_to(self.id, Offer(1.5, self.id))"
    )
    if not sends:
        begin, answer = "self.send_to_neighbors(Offer(self.x, self.id))", ""
    text = f"if self.superstep == 0:\n    self.x = 1.0 + self.id % 7\n    {begin}\n"
    text += "else:\n" + "".join(f"    {line}\n" for line in (body + answer).splitlines())
    if sums:
        text += "if self.superstep == 2:\n    self.x += sum(self.id * m.price for m in messages)\n"
    return program_of(
        text + "self.vote_to_halt()",
        "n: State[int] = 0\ntotal = Aggregator.sum(int)\nmost = Aggregator.max(float)\nhit = Aggregator.any()\n",
        message="message=Offer",
        before=_OFFER,
    )
