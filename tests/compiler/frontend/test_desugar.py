"""Python's shorter forms: as Python means them, and refused where they have no longer form."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import CompileError, Graph, run

RING = Graph.from_edges(list(range(9)), [(i + 1) % 9 for i in range(9)])
FIELDS = "t: State[int] = 0\nf: State[float] = 0.0\nn: State[Vector[int, 4]] = (1, 2, 3, 4)"

FORMS = {
    "match of numbers": """
match self.id % 4:
    case 0:
        t = 1
    case 1 | 2:
        t = 2
    case _:
        t = 3
""",
    "match without a default": """
t = 0
match self.id:
    case 2:
        t = 1
    case -1 | 5:
        t = 2
""",
    "match with names and guards": """
match self.id:
    case n if n > 6:
        t = n * 2
    case 3 as n:
        t = n
    case n if n % 2 == 0:
        t = -n
    case other:
        t = other + 100
""",
    "match of a tuple": """
match (self.id % 2, self.id > 4):
    case (0, True):
        t = 1
    case (k, False) if k == 1:
        t = k + 1
    case (_, big):
        t = 10 + big
""",
    "match within match": """
t = 0
match self.id % 3:
    case 0:
        match self.id:
            case 0:
                t = 7
            case n:
                t = n
    case 1:
        pass
""",
    "walrus in if": "t = 0\nif (n := self.id * 3) > 10:\n    t = n",
    "walrus in elif": """
if self.id == 1:
    t = 5
elif (n := self.id + 2) > 5:
    t = n
else:
    t = -1
""",
    "walrus in while": """
t, n = 0, self.id
while (n := n - 1) > 0:
    if n == 3:
        continue
    t += n
""",
    "walrus in an assignment": "t = (n := self.id + 1) * n",
    "enumerate": """
t = 0
for i, x in enumerate((5, 7, 9), 1):
    if x == 7:
        continue
    t += i * x * self.id
""",
    "enumerate of edges": "t = 0\nfor k, edge in enumerate(self.out_edges):\n    t += k + edge.target",
    "walrus in front of and": "t = 0\nif (n := self.id * 3) > 10 and n < 20:\n    t = n",
    "walrus before it is read": "n = 1\nn = (n := n + self.id) * n\nt = n",
    "walrus of a draw": "t = self.id + int((r := self.random()) < 2.0) + int(r < 2.0)",
    "walrus in a walrus": "t = (a := (b := self.id + 2) * b) + b - a // 2",
    "walrus behind a method": "t = self.double(self.id) + (n := 3) * n",
    "walrus before its target": "k = 1\nself.n[k] = (k := self.id % 4)\nt = self.n[k] * 10 + self.n[1]",
    "zip in a generator": "n = self.n * self.id\nt = sum(a * b + 1 for a, b in zip(self.n, n) if a != 2)",
    "enumerate in a generator": "t = max((i * a for i, a in enumerate(self.n) if i < self.id), default=-1)",
    "zip of what is chosen": """
t = 0
n = self.n * 3
for a, b in zip(self.n if self.id % 2 else n, range(3)):
    t += a * b
""",
    "zip": "t = 0\nfor a, b, c in zip((1, 2, 3), range(self.id), (4, 5, 6)):\n    t += a * 100 + b * 10 + c",
    "for with else": """
t = 0
for q in range(5):
    if q == self.id:
        break
    t += q
else:
    t += 1000
""",
    "while with else": """
t, n = 0, 5
while n > 0:
    n -= 1
    if n == self.id:
        break
else:
    t = 1000
""",
    "else of the outer loop": """
t = 0
for q in range(4):
    for r in range(4):
        if r == 2:
            break
        t += 1
    else:
        t += 100
    if q == self.id:
        break
else:
    t += 1000
""",
    "loop else in a loop else": """
t = 0
for q in (1, 2):
    t += q
else:
    for r in (3,):
        t += r
    else:
        t += 10
""",
    "bits": "t = (self.id * 37).bit_count() * 100 + (-self.id).bit_length()",
    "bits of an unsigned number": "t = int((np.uint64(2**63) + np.uint64(self.id)).bit_count())",
    "a method with short forms": "t = self.kind(self.id)",
}
METHOD = """
def double(self, n):
    return 2 * n

def kind(self, n):
    match n % 3:
        case 0:
            return 10
        case m:
            return m
"""


@pytest.mark.parametrize("form", FORMS)
def test_a_short_form_means_what_python_means(form: str) -> None:
    body = f"{FORMS[form].strip()}\nself.t = t\nself.vote_to_halt()"
    judge, found = (run(program_of(body, FIELDS + METHOD), RING, device=d) for d in ("python", "cpu"))
    assert found["t"].tolist() == judge["t"].tolist()
    assert len(set(found["t"].tolist())) > 1 or "loop else in" in form


CHANGING = """
x: State[int] = 0
n: State[Vector[int, 4]] = (1, 2, 3, 4)
def bump(self):
    self.x += 1
    return self.x
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.x = k + (k := 5)",
        "k += (k := 5)",
        "self.x = k * (j := (k := 5))",
        "self.x = (j := k + (k := 5))",
        "self.n[(k := 2)] = k",
        "self.n[k] += (k := 2)",
        "self.x = self.x + (j := self.bump())",
        "self.x = self.bump() + (j := self.x)",
        "self.x = self.bump() + (j := self.bump())",
        "self.x = int(self.random() > (r := self.random()))",
        "self.x = int(k < 2 < (j := 3))",
        "self.x = (j := 2) if k > 0 else 3",
    ],
)
def test_a_walrus_that_taken_out_would_mean_something_else_is_refused(line: str) -> None:
    with pytest.raises(CompileError, match="line of its own") as caught:
        run(program_of(f"k = 1\n{line}\nself.vote_to_halt()", CHANGING), RING, device="cpu")
    assert caught.value.source == line


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "if self.id > 1 and (n := self.id) > 2:\n    self.x = 1.0",
            "':=' stands where it is always reached",
        ),
        ("match self.id:\n    case [a, b]:\n        self.x = 1.0", "'match' takes numbers"),
        ("match self.id:\n    case int():\n        self.x = 1.0", "'match' takes numbers"),
        ("for a, b in zip(messages, (1, 2)):\n    self.x = 1.0", "zip\\(\\) takes tuples"),
        ("for i in enumerate((1, 2)):\n    self.x = 1.0", "enumerate\\(\\) is written"),
        ("a = enumerate((1, 2))", "enumerate\\(\\) is written"),
    ],
)
def test_refused(body: str, says: str) -> None:
    with pytest.raises(CompileError, match=says) as caught:
        run(program_of(body), RING, device="cpu")
    assert caught.value.source in body


def test_a_name_that_only_some_cases_set() -> None:
    body = "match self.id:\n    case 0:\n        t = 1\n    case 1:\n        t = 2\nself.x = t"
    with pytest.raises(CompileError, match="'t'") as caught:
        run(program_of(body), RING, device="cpu")
    assert caught.value.source == "self.x = t"
