"""Programs drawn from a grammar of what vertices say to each other: records, vectors, edges, groups, random numbers.

Whole runs on a small graph, where `drawn_programs.py` calls compute() once.
"""

from __future__ import annotations

import random
import textwrap

from cells import run_cell

from sigps import Graph, Vertex

__all__ = ["GRAPHS", "drawn_exchange"]

GRAPHS = [
    Graph.from_edges([0, 1, 2, 0, 3, 3], [1, 2, 0, 2, 0, 1], weights=[1.0, 2.5, 3.0, 0.5, -1.0, 2.0]),
    Graph.from_edges(
        [0, 0, 0, 0, 4, 4], [1, 2, 3, 1, 4, 0], weights=[1.0, 1.0, 2.0, 3.0, 0.25, 8.0], directed=False
    ),
]
"""Directed without loops; undirected with a hub, a loop and parallel edges."""

RECORDS = """
class Spot(NamedTuple):
    x: float
    n: int
class Note(NamedTuple):
    key: int
    weight: float
    spot: Spot
class Trail(NamedTuple):
    at: Vector[float, 3]
    n: int
def twice(one):
    return one._replace(n=one.n * 2)
"""
FIELDS = """
x: State[float] = 0.5
n: State[int] = 1
s: State[Spot] = Spot(1.5, 2)
t: State[Trail] = Trail((1.0, -2.0, 0.5), 3)
total = Aggregator.sum(int)
most = Aggregator.max(float)
kept: EdgeState[float] = 0.5
seen: EdgeState[int] = 0
def bent(self, a):
    if a > 2:
        return a - self.n % 3
    return a * 2
def near(self, one, b):
    return one if one.x < b else one._replace(x=b)
"""
MESSAGES = ("float", "int", "Spot", "Note", "Trail", "Vector[float, 3]")
"""The types of messages."""


def drawn_exchange(seed: int) -> Vertex:
    """Return a drawn program; the same one for the same seed."""
    drawing = _Drawing(seed)
    body = textwrap.indent("\n".join(drawing.body()), "        ")
    fields = FIELDS
    if not drawing.keeps:
        fields = "\n".join(line for line in FIELDS.splitlines() if "EdgeState" not in line)
    source = f"{RECORDS}\nclass Drawn(Vertex, message={drawing.message}):\n" + textwrap.indent(fields, "    ")
    made: Vertex = run_cell(f"{source}\n    def compute(self, messages):\n{body}\n")["Drawn"]()
    return made


class _Drawing:
    """Draws the text of a compute(); `keeps` says whether it keeps values on edges."""

    def __init__(self, seed: int) -> None:
        self._pick = random.Random(seed)
        self.message = self._pick.choice(MESSAGES)
        self.keeps = self._pick.random() < 0.3

    def body(self) -> list[str]:
        pick = self._pick
        lines = ["a, b, i, j = self.x, 1.5, self.n, 2", "p = self.s", "q = Spot(b, self.id)", "v = self.t.at"]
        if self.keeps:
            lines += [
                "for edge in self.out_edges:",
                f"    edge.kept = edge.kept * 0.5 + {self.real(1, 'edge')}",
                f"    edge.seen = {self.whole(1, 'edge')} & 255",
                "    a += edge.kept - edge.seen",
            ]
        for _ in range(pick.randrange(1, 3)):
            lines += self.reading()
        for _ in range(pick.randrange(1, 4)):
            lines += self.statement(1)
        lines += [f"self.total += {self.whole(1)} % 1000", f"self.most += {self.real(0)}"]
        lines += ["self.x, self.n = a, i % 100000", f"self.s = {self.spot(2)}", f"self.t = {self.trail(1)}"]
        return [*lines, "if self.superstep < 3:", *indented(self.sending()), "self.vote_to_halt()"]

    # What is read.

    def reading(self) -> list[str]:
        """Draw a use of messages."""
        pick = self._pick
        number, whole, real = self._of_message("m")
        test = pick.choice([f"{number} > {self.real(0)}", f"{whole} % 2 == 0", f"{whole} != self.n", "True"])
        kinds = [
            [f"i += sum({whole} for m in messages if {test})"],
            ["i += len(messages)", f"j += {self.whole(0)}"],
            [f"a = max(({real} for m in messages), default={self.real(0)})"],
            [f"a += min(({number} for m in messages if {test}), default=2.0)"],
            [f"j = any({test} for m in messages) + all({test} for m in messages)"],
            [f"if messages:\n    i = i + max({whole} for m in messages)"],
            ["for m in messages:", f"    if {test}:", f"        i += {whole}", f"    j = max(j, {whole})"],
            [
                f"for key, group in messages.grouped(lambda m: {whole} % 3):",
                "    i += key * len(group)",
                f"    j = min((({whole}) for m in group), default=0)",
            ],
            [f"i = messages.most_common(lambda m: {whole} % 5, default=i)"],
            [f"i += messages.most_common(lambda m: {whole} % 4, weight=lambda m: {whole} & 7, default=3)"],
            [f"if (k := sum({whole} for m in messages)) > 3:", "    i += k", "else:", "    j -= k"],
            ["for m in messages:", f"    i ^= {whole}"],
        ]
        if self.message in ("Spot", "Note"):
            least = pick.choice(["min", "max"])
            default = self.spot(0) if self.message == "Spot" else "Note(1, 2.0, q)"
            part = "" if self.message == "Spot" else ".spot"
            kinds += 3 * [
                [f"m = {least}(messages, default={default})", f"p = m{part}"],
                [
                    f"m = {least}(messages, key=lambda m: ({whole}, {number}), default={default})",
                    f"q = m{part}",
                ],
                [
                    "for m in messages:",
                    f"    k = m{part}._replace(n={self.whole(0)})",
                    f"    j += k.n + {whole}",
                ],
                ["for m in messages:", f"    k = twice(m{part})", "    j ^= k.n"],
            ]
        if self.message in ("Trail", "Vector[float, 3]"):
            at = "m.at" if self.message == "Trail" else "m"
            kinds += 3 * [
                [f"v = sum(({at} for m in messages), v)"],
                ["for m in messages:", f"    for e in {at}:", "        j += int(e * 4.0) & 63"],
                ["for m in messages:", f"    w = {at} * 2.0", f"    j += int(sum(w)) % 7 + int({at}[1]) % 5"],
                ["for m in messages:", f"    for e, f in zip({at}, v):", "        j += (e > f) + 1"],
            ]
        return pick.choice(kinds)

    def _of_message(self, m: str) -> tuple[str, str, str]:
        """Return what is read of a message: a number, a whole number, and a float."""
        pick = self._pick
        if self.message == "float":
            return m, f"int({m} * 4.0) % 97", m
        if self.message == "int":
            return m, m, f"{m} * 0.25"
        if self.message == "Spot":
            return pick.choice([f"{m}.x", f"{m}.n"]), f"{m}.n", f"{m}.x"
        if self.message == "Note":
            whole = pick.choice([f"{m}.key", f"{m}.spot.n"])
            return pick.choice([f"{m}.weight", f"{m}.spot.x"]), whole, f"{m}.spot.x"
        at = f"{m}.at" if self.message == "Trail" else m
        whole = f"{m}.n" if self.message == "Trail" and pick.random() < 0.5 else f"int({at}[2] * 4.0) % 89"
        return f"{at}[{pick.randrange(-3, 3)}]", whole, f"max({at})"

    # What is computed.

    def statement(self, depth: int) -> list[str]:
        pick = self._pick
        kinds = [
            [f"i {pick.choice(['=', '+=', '^=', '-='])} {self.whole(2)}"],
            [f"a {pick.choice(['=', '+=', '*='])} {self.real(2)}"],
            [f"p = {self.spot(2)}"],
            [f"q = p._replace(x={self.real(1)})"],
            [f"v = {self.vector(2)}"],
            ["x, k = p", "j += k", "a += x"],
            [f"self.s = {self.spot(1)}", "p = self.s"],
            [f"a = self.random() * {self.real(0)}"],
            ["j += self.random_int(5)"],
            [f"v[{pick.randrange(3)}] = {self.real(1)}"],
            [f"if (k := {self.whole(1)}) > {self.whole(0)}:", "    j = k % 11"],
            [
                f"match {pick.choice(['i % 4', 'self.superstep', 'self.id'])}:",
                "    case 0 | 2:",
                f"        j += {self.whole(1)}",
                "    case k if k > 2:",
                "        j -= k",
                "    case _:",
                f"        a = {self.real(1)}",
            ],
            [
                "match (i % 2, j % 3):",
                "    case (0, 1):",
                f"        i = {self.whole(1)}",
                "    case (k, 2):",
                "        i += k",
            ],
            [
                "for edge in self.out_edges:",
                f"    if {self.truth(0)} or edge.weight > 1:",
                f"        i += {self.whole(1, 'edge')}",
                f"    a = max(a, {self.real(1, 'edge')})",
            ],
            [f"i += sum(edge.target for edge in self.out_edges if edge.weight > {self.real(0)})"],
            ["for k, e in enumerate(self.t.at, 1):", "    a += k * e", "else:", "    j += 1"],
            ["if self.out_degree > 0:", "    edge = self.random_edge()", "    i += edge.target"],
            [
                "if self.out_degree > 0:",
                "    edge = min(self.out_edges, key=lambda e: e.weight)",
                "    j += edge.target",
            ],
            ["for k, e in zip(range(3), (j, i, 7)):", "    if e > 5:", "        break", "    i += k"],
        ]
        if depth:
            inner = [line for _ in range(2) for line in self.statement(depth - 1)]
            kinds += 3 * [[f"if {self.truth(1)}:", *indented(inner), "else:", *indented(self.statement(0))]]
        return pick.choice(kinds)

    def whole(self, depth: int, edge: str = "") -> str:
        pick = self._pick
        if depth == 0 or pick.random() < 0.2:
            more = [f"{edge}.target"] if edge else []
            return pick.choice(
                [
                    "i",
                    "j",
                    "self.id",
                    "self.n",
                    "3",
                    "p.n",
                    "q.n",
                    "self.s.n",
                    "self.out_degree",
                    "self.t.n",
                    *more,
                ]
            )
        a, b = self.whole(depth - 1, edge), self.whole(depth - 1, edge)
        return pick.choice(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * 3)",
                f"({a} % 7)",
                f"({a} ^ {b})",
                f"({a} // (abs({b}) + 1))",
                f"({a} if {self.truth(depth - 1)} else {b})",
                f"min({a}, {b})",
                f"self.bent({a} % 50)",
                f"int({self.real(0, edge)}) % 13",
                f"twice({self.spot(depth - 1)}).n",
                f"({a} & 63).bit_count()",
                f"divmod({a}, 5)[1]",
            ]
        )

    def real(self, depth: int, edge: str = "") -> str:
        pick = self._pick
        if depth == 0 or pick.random() < 0.2:
            more = [f"{edge}.weight"] if edge else []
            return pick.choice(
                ["a", "b", "self.x", "0.5", "-2.0", "p.x", "q.x", "self.s.x", "self.t.at[1]", "v[0]", *more]
            )
        a, b = self.real(depth - 1, edge), self.real(depth - 1, edge)
        return pick.choice(
            [
                f"({a} + {b})",
                f"({a} * 0.5)",
                f"({a} - {b})",
                f"({a} if {self.truth(depth - 1)} else {b})",
                f"max({a}, {b})",
                f"abs({a})",
                f"float({self.whole(depth - 1, edge)} % 9)",
                f"self.near({self.spot(depth - 1)}, {b}).x",
                f"sum({self.vector(depth - 1)})",
                f"math.sqrt(abs({a}))",
            ]
        )

    def truth(self, depth: int) -> str:
        pick = self._pick
        return pick.choice(
            [
                f"{self.whole(depth)} {pick.choice(['<', '==', '>='])} {self.whole(depth)}",
                f"{self.real(depth)} < {self.real(depth)}",
                "self.superstep % 2",
                "self.id > 1",
                f"p {pick.choice(['==', '<', '!='])} q",
                f"{self.whole(depth)} in (1, 2, 5)",
                f"any(v > {self.real(0)})",
            ]
        )

    def spot(self, depth: int, edge: str = "") -> str:
        """Draw a Spot."""
        pick = self._pick
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(["p", "q", "self.s", f"Spot({self.real(0, edge)}, {self.whole(0, edge)})"])
        return pick.choice(
            [
                f"Spot({self.real(depth - 1, edge)}, {self.whole(depth - 1, edge)} % 1000)",
                f"Spot(n={self.whole(0, edge)}, x={self.real(0, edge)})",
                f"p._replace(x={self.real(depth - 1, edge)})",
                f"q._replace(n={self.whole(depth - 1, edge)} % 99)",
                f"self.s._replace(n={self.whole(0, edge)}, x={self.real(0, edge)})",
                f"({self.spot(depth - 1, edge)} if {self.truth(0)} else {self.spot(depth - 1, edge)})",
            ]
        )

    def vector(self, depth: int, edge: str = "") -> str:
        pick = self._pick
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(["v", "self.t.at", f"Vector[float, 3]({self.real(0, edge)})"])
        a, b = self.vector(depth - 1, edge), self.vector(depth - 1, edge)
        return pick.choice(
            [
                f"({a} + {b})",
                f"({a} * 0.5)",
                f"({a} - {self.real(0, edge)})",
                f"(-{a})",
                f"np.maximum({a}, {b})",
                f"({a} if {self.truth(0)} else {b})",
                f"Vector[float, 3](({self.real(0, edge)}, 1.0, {a}[2]))",
            ]
        )

    def trail(self, depth: int, edge: str = "") -> str:
        made = f"Trail({self.vector(depth, edge)}, {self.whole(depth, edge)} % 500)"
        other = f"self.t._replace(at={self.vector(depth, edge)})"
        return self._pick.choice([made, other, f"({made} if {self.truth(0)} else {other})"])

    # What is sent.

    def sending(self) -> list[str]:
        pick = self._pick
        return pick.choice(
            [
                [f"self.send_to_neighbors({self.sent()})"],
                [f"if {self.truth(1)}:", f"    self.send_to_neighbors({self.sent()})"],
                ["for edge in self.out_edges:", f"    self.send(edge, {self.sent('edge')})"],
                [
                    "for edge in self.out_edges:",
                    f"    if edge.weight > {self.real(0)}:",
                    f"        self.send(edge, {self.sent('edge')})",
                ],
                [
                    "for edge in self.out_edges:",
                    f"    k = {self.whole(1, 'edge')}",
                    "    if k % 3 == 0:",
                    "        continue",
                    f"    self.send(edge, {self.sent('edge')})",
                ],
                [f"self.send_to((self.id + {self.whole(0)}) % self.num_vertices, {self.sent()})"],
                [
                    f"self.send_to(self.random_int(3), {self.sent()})",
                    f"self.send_to_neighbors({self.sent()})",
                ],
            ]
        )

    def sent(self, edge: str = "") -> str:
        if self.message == "float":
            return self.real(2, edge)
        if self.message == "int":
            return f"{self.whole(2, edge)} % 1000"
        if self.message == "Spot":
            return self.spot(2, edge)
        if self.message == "Note":
            note = f"Note({self.whole(1, edge)} % 1000, {self.real(1, edge)}, {self.spot(1, edge)})"
            return self._pick.choice([note, f"{note} if {self.truth(0)} else Note(1, 2.0, q)"])
        return self.trail(1, edge) if self.message == "Trail" else self.vector(2, edge)


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
