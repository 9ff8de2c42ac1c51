"""All that the front end refuses: the line in the error, and the remedy."""

from __future__ import annotations

import pytest
from cells import program_of, run_cell

from sigps import CompileError
from sigps.compiler.frontend.analysis import analyse

OFFER = """
class Offer(NamedTuple):
    price: float
    seller: VertexId
"""

HELPERS = """
def helper(self, a, b=1):
    return a + b

def act(self, y):
    if y > 1:
        return 1
    self.x = y
    return 2

def loop(self):
    return self.loop()

@classmethod
def shared(cls):
    return 1

table = {1: 2}
"""


def refused(body: str, fields: str = "", **options: object) -> CompileError:
    """Return the error, which names a file, a line, and the line's text."""
    program = program_of(body, fields, **options)  # type: ignore[arg-type]
    with pytest.raises(CompileError) as caught:
        analyse(program)
    error = caught.value
    assert error.file is not None
    assert error.file.startswith("<ipython-input-")
    assert error.source
    assert str(error).startswith(f"{error.file}:{error.line}: ")
    assert str(error).endswith(error.source)
    return error


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("try:\n    self.x = 1\nexcept ValueError:\n    pass", "test for the case before it happens"),
        ("with open('f') as f:\n    pass", "open nothing in compute"),
        ("raise ValueError('x')", "store an error code in a State field"),
        ("assert self.x > 0", "run with device='python'"),
        ("f = lambda y: y", "write a method or a function of the module"),
        ("def f(y):\n    return y", "write a method or a function of the module"),
        ("class A:\n    pass", "write it in the module"),
        ("import os", "import at the top of the file"),
        ("from os import path", "import at the top of the file"),
        ("global x", "through aggregators"),
        ("del self.x", "leave the variable be"),
        ("yield 1", "send messages instead"),
        ("values = [1, 2]", "use State fields, tuples or local variables"),
        ("values = {1: 2}", "use State fields, tuples or local variables"),
        ("values = {1, 2}", "use State fields, tuples or local variables"),
        ("values = [m for m in messages]", "reduce with sum()"),
        ("values = {m for m in messages}", "use a loop"),
        ("values = {m: 1 for m in messages}", "use a loop"),
        ("text = f'{self.x}'", "print and format with device='python'"),
        ("self.x = max(*messages)", "name the arguments"),
        ("print(self.x)", "trace=[ids]"),
        ("breakpoint()", "device='python'"),
        ("super().compute(messages)", "give the shared part a method name of its own"),
        ("best = sorted(messages)", "keep the best ones in local variables"),
        ("best = list(messages)", "loop over the messages themselves"),
        ("best = next(messages)", "use min() or max()"),
        (
            "for m in messages.copy():\n    pass",
            "a loop runs over messages, messages.grouped(...), self.out_edges",
        ),
        ("for a, b in self.out_edges:\n    pass", "the loop variable must be one name"),
        ("self.y = 1.0", "Program has no 'y'"),
        ("self.x = self.supersteps", "did you mean self.superstep?"),
        ("self.superstep = 3", "it is read-only. Only State fields can"),
        ("self.p = 3", "it is a parameter of the run"),
        ("self.x = self.vote_to_halt()", "call it on a line of its own"),
        ("self.vote_to_halt(1)", "takes 0 arguments"),
        ("self.send_to(1)", "takes 2 arguments"),
        ("self.send_to_neighbors(message=1.0)", "takes 1 argument, without names"),
        ("self.x = self.helper()", "takes 1 to 2 arguments"),
        ("self.x = self.helper(1, b=2)", "without names"),
        ("self.x = self.helper", "can only be called"),
        ("self.x = 1 + self.act(2)", "on a line of its own"),
        ("self.x = self.shared()", "make it a staticmethod"),
        ("self.x = self.table[1]", "use a State or Param field"),
        ("self.x = undefined", "the name 'undefined' is not defined"),
        ("self.x = maht.pi", "did you mean 'math'?"),
        ("self.x = math.sqrrt(2.0)", "the module math has no 'sqrrt'; did you mean 'sqrt'?"),
        ("self.x = random.random()", "draw with x = self.random()"),
        ("self.x = np.random.rand()", "draw with x = self.random()"),
        ("self.x = TABLE[1]", "the global 'TABLE' is a dict"),
        ("__y = 1", "begins with two underscores"),
        ("return self.x", "compute() returns nothing"),
        ("self.total = 3", "contribute with 'self.total += x'"),
        ("self.total -= 3", "no other operator"),
        ("self.x = min(messages)", "needs default=..., or to stand under 'if messages:'"),
        ("self.x = sum(messages, 1, 2)", "takes what it reduces and start=, nothing else"),
        ("self.x = sum(m for m in messages for k in messages)", "one 'for' inside it"),
        ("self.x = messages[0]", "not stored, indexed or handed on"),
        ("y = messages", "not stored, indexed or handed on"),
        ("self.x = len(self.out_edges)", "use self.out_degree"),
        ("self.x = min(e.weight for e in self.out_edges)", "of edges needs default"),
        ("self.x = sum(a for a, b in messages)", "cannot be taken apart"),
        ("for edge in self.out_edges:\n    self.send(edge, edge)", "an edge can only be used as edge.target"),
        ("for edge in self.out_edges:\n    edge.weight = 1.0", "its columns belong to the graph"),
        ("for edge in self.out_edges:\n    y = edge", "an edge can only be used as edge.target"),
        ("self.send(3, 1.0)", "the variable of a loop over self.out_edges"),
        ("self.send_to_neighbors((1.0, 2.0))", "declare a NamedTuple"),
    ],
)
def test_refused(line: str, says: str) -> None:
    fields = "p: Param[int] = 1\ntotal = Aggregator.sum(float)\n" + HELPERS
    error = refused("self.x = 0.5\n" + line, fields, before="TABLE = {1: 2}")
    assert says in str(error)
    assert error.source in line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.send_to_neighbors(Offer(1.0))", "Offer takes exactly these fields: price, seller"),
        ("self.send_to_neighbors(Offer(1.0, 2, 3))", "Offer takes exactly these fields"),
        ("self.send_to_neighbors((1.0, 2, 3))", "a message has 2 fields (price, seller), not 3"),
        ("self.send_to_neighbors(1.0)", "a message is written as Offer(...) where it is sent"),
        ("for a, b, c in messages:\n    pass", "a message has 2 fields, not 3"),
        ("self.x = sum(messages)", "write sum(m.price for m in messages)"),
        ("self.x = sum(m.prize for m in messages)", "a message has no field 'prize'; it has: price, seller"),
        ("self.x = min((m.prize for m in messages), default=1)", "a message has no field 'prize'"),
    ],
)
def test_refused_of_a_named_tuple(line: str, says: str) -> None:
    error = refused(line, message="message=Offer", before=OFFER)
    assert says in str(error)
    assert error.source in line


def test_refused_inside_a_method_points_into_the_method() -> None:
    error = refused("self.x = self.f()", "def f(self):\n    y = 1\n    return [y]")
    assert error.source == "return [y]"


def test_recursion_points_at_the_call() -> None:
    error = refused("self.x = self.loop()", HELPERS)
    assert "write the recursion as a loop" in str(error)
    assert error.source == "return self.loop()"


def test_an_acting_method_returns_once() -> None:
    error = refused("self.act(2)", HELPERS)
    assert "its only 'return' must be its last line" in str(error)
    assert error.source == "return 1"


def test_sends_without_a_message_type() -> None:
    error = refused("self.send_to_neighbors(1.0)", message="directed=True")
    assert "declares none: class Program(Vertex, message=float)" in str(error)


def test_reads_without_a_message_type() -> None:
    error = refused("self.x = sum(messages)", message="directed=True")
    assert "declares none: class Program(Vertex, message=float)" in str(error)


def test_arguments_of_compute() -> None:
    program = program_of("pass")
    source = "class Program(Vertex):\n    def compute(self):\n        pass"
    with pytest.raises(CompileError, match="must be written as 'def compute"):
        analyse(run_cell(source)["Program"]())
    assert analyse(program).name == "Program"


def test_a_branch_that_a_parameter_rules_out_may_hold_anything() -> None:
    body = """
    if self.verbose:
        print(self.undefined, [1])
    self.x = 1.0 if self.verbose is None else undefined
    """
    assert "print" not in analyse(program_of(body, "verbose: Param[bool | None] = None")).source
