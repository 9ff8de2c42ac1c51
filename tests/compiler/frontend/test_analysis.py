"""What the front end derives from a class, and the sources it reads: files, notebook cells, none."""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from cells import IMPORTS, program_of, run_cell
from worked_cases import CASES

from sigps import CompileError, Graph, Vertex, run
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery, EarlyExit

PATH = Graph.from_edges([0, 1], [1, 2])

COUNTER = """
class Counter(Vertex):
    x: State[int] = 0
    def compute(self, messages):
        self.x = self.id + {step}
        self.vote_to_halt()
"""


@pytest.mark.parametrize(
    ("program", "delivery", "consumption", "early_exit", "num_record"),
    [
        (PageRank(), Delivery.RECORD, Consumption.COMBINED, EarlyExit.NEVER, 1),
        (BFS(source=0), Delivery.RECORD, Consumption.COMBINED, EarlyExit.LOWEST, 0),
        (WCC(), Delivery.RECORD, Consumption.COMBINED, EarlyExit.NEVER, 1),
        (SSSP(source=0), Delivery.RECORD, Consumption.COMBINED, EarlyExit.NEVER, 1),
        (OutDegree(), Delivery.NONE, Consumption.NONE, EarlyExit.NEVER, 0),
        (CASES["presence"].program(), Delivery.RECORD, Consumption.COMBINED, EarlyExit.FIRST, 0),
        (CASES["last_one"].program(), Delivery.RECORD, Consumption.LISTED, EarlyExit.NEVER, 0),
        (CASES["carried"].program(), Delivery.DIRECT, Consumption.COMBINED, EarlyExit.NEVER, 0),
        (CASES["postman"].program(), Delivery.DIRECT, Consumption.LISTED, EarlyExit.NEVER, 0),
        (CASES["combiner"].program(), Delivery.RECORD, Consumption.SINGLE, EarlyExit.NEVER, 0),
        (CASES["alternatives_plain"].program(), Delivery.RECORD, Consumption.COMBINED, EarlyExit.NEVER, 5),
    ],
)
def test_what_is_derived(
    program: Vertex, delivery: Delivery, consumption: Consumption, early_exit: EarlyExit, num_record: int
) -> None:
    derived = analyse(program)
    assert (derived.delivery, derived.consumption, derived.early_exit) == (delivery, consumption, early_exit)
    assert len(derived.record) == num_record


def test_a_narrow_sender_id_may_wrap_so_the_first_is_not_the_lowest() -> None:
    body = "self.x = min(messages, default=1)\nself.send_to_neighbors(self.id)"
    assert analyse(program_of(body, message="message=np.int8")).early_exit is EarlyExit.NEVER
    assert analyse(program_of(body, message="message=int")).early_exit is EarlyExit.LOWEST


def test_obstacles_name_their_line() -> None:
    body = """
    for m in messages:
        self.x = m
    self.send_to(0, 1.0)
    """
    messages, sends = analyse(program_of(body)).obstacles
    assert messages == "line 6: the loop over messages does more than fold them"
    assert sends == "line 7: send_to() can reach any vertex"


def test_the_key_is_the_program() -> None:
    first, second, other = (analyse(run_cell(COUNTER.format(step=s))["Counter"]()) for s in (1, 1, 2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != other


HELPED = """
{name}
class Helped(Vertex):
    x: State[float] = 0.0
    def compute(self, messages):
        self.x = helper(1.0)
        self.vote_to_halt()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def helper(x, by=2.0):\n    return x * by", "def helper(x, by=3.0):\n    return x * by"),
        ("def helper(x):\n    return x * 2.0", "def helper(x):\n    return x * 3.0"),
        ("C = 2.0\ndef helper(x):\n    return x * C", "C = 3.0\ndef helper(x):\n    return x * C"),
        (
            "def inner(x):\n    return 2.0 * x\ndef helper(x):\n    return inner(x)",
            "def inner(x):\n    return 3.0 * x\ndef helper(x):\n    return inner(x)",
        ),
        (
            "import types\nm = types.ModuleType('m')\nm.C = 2.0\ndef helper(x):\n    return x * m.C",
            "import types\nm = types.ModuleType('m')\nm.C = 3.0\ndef helper(x):\n    return x * m.C",
        ),
    ],
)
def test_a_changed_helper_is_a_changed_program(before: str, after: str) -> None:
    for source, expected in ((before, 2.0), (after, 3.0)):
        program = run_cell(HELPED.format(name=source))["Helped"]()
        assert run(program, PATH, device="cpu")["x"].tolist() == [expected] * 3


def test_a_changed_constant_of_a_module_is_a_changed_program() -> None:
    names = run_cell("import types\nm = types.ModuleType('m')\nm.C = 2")
    source = COUNTER.format(step="m.C")
    for value in (2, 3):
        names["m"].C = value
        assert run(run_cell(source, names)["Counter"](), PATH, device="cpu")["x"].tolist() == [
            value,
            value + 1,
            value + 2,
        ]


def test_a_changed_constant_that_only_a_generator_reads() -> None:
    source = """
    C = 2.0
    class P(Vertex, message=float):
        x: State[float] = 0.0
        def compute(self, messages):
            self.x = sum(m * C for m in messages)
            if self.superstep == 0:
                self.send_to_neighbors(1.0)
            self.vote_to_halt()
    """
    names = run_cell(source)
    for value in (2.0, 3.0):
        names["C"] = value
        assert run(names["P"](), PATH, device="cpu")["x"].tolist() == [0.0, value, value]


def test_a_class_defined_again_in_another_cell() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in (5, 7, 5):
        run_cell(COUNTER.format(step=step), names)
        assert run(names["Counter"](), PATH, device="cpu")["x"].tolist() == [step, step + 1, step + 2]


def test_an_edited_file_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "edited_program.py"
    for number, step in enumerate((5, 700)):
        file.write_text(IMPORTS + COUNTER.format(step=step))
        os.utime(file, (number, number))
        module = _loaded(file)
        assert run(module.Counter(), PATH, device="cpu")["x"].tolist() == [step, step + 1, step + 2]


def test_an_edited_file_not_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "stale_program.py"
    file.write_text(IMPORTS + COUNTER.format(step=5))
    module = _loaded(file)
    file.write_text(IMPORTS + COUNTER.format(step=700))
    os.utime(file, (1, 1))
    with pytest.raises(CompileError, match="has changed since it was loaded: load it again") as caught:
        analyse(module.Counter())
    assert caught.value.file == str(file)


def _loaded(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    linecache.checkcache(str(file))
    return module


def test_no_source() -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(IMPORTS + COUNTER.format(step=1), names)
    with pytest.raises(CompileError, match=r"cannot be read.*Put the class in a file.*device='python'"):
        analyse(names["Counter"]())
    assert run(names["Counter"](), PATH, device="python")["x"].tolist() == [1, 2, 3]


def test_no_compute() -> None:
    program = run_cell("class Empty(Vertex):\n    x: State[int] = 0")["Empty"]()
    with pytest.raises(CompileError, match=r"Empty has no compute\(\): write 'def compute"):
        analyse(program)


def test_a_lambda_is_no_method() -> None:
    program = run_cell("class P(Vertex):\n    compute = lambda self, messages: self.vote_to_halt()")["P"]()
    with pytest.raises(CompileError, match="must be a plain 'def', not a lambda"):
        analyse(program)


@pytest.mark.parametrize("decorator", ["functools.wraps(print)", "plain"])
def test_decorators_are_refused(decorator: str) -> None:
    source = f"""
    import functools
    def plain(f):
        return f
    class P(Vertex):
        @{decorator}
        def compute(self, messages):
            self.vote_to_halt()
    """
    with pytest.raises(CompileError, match="decorator"):
        analyse(run_cell(source)["P"]())


def test_text_at_the_margin_of_a_method() -> None:
    source = '''
class P(Vertex):
    x: State[int] = 0
    def compute(self, messages):
        """First line,
second line at the margin.
"""
# a comment at the margin
        self.x = 3
        self.y = 4
'''
    with pytest.raises(CompileError, match="P has no 'y'") as caught:
        analyse(run_cell(source)["P"]())
    assert caught.value.line == 9
    assert caught.value.source == "self.y = 4"


def test_names_of_the_arguments_are_free() -> None:
    source = """
    class P(Vertex, message=int):
        x: State[int] = 0
        def compute(v, inbox):
            self = 3
            messages = v.double(self)
            v.x = sum(inbox) + messages
            if v.superstep == 0:
                v.send_to_neighbors(1)
            v.vote_to_halt()
        def double(me, y):
            return 2 * y + me.superstep
    """
    program = run_cell(source)["P"]()
    for device in ("python", "cpu"):
        assert run(program, PATH, device=device)["x"].tolist() == [6, 8, 8]


def test_annotations_may_name_what_is_not_there() -> None:
    source = """
    from __future__ import annotations
    class P(Vertex, message=int):
        x: State[int] = 0
        def compute(self, messages: Iterable[int]) -> None:
            y: Missing = self.f(2)
            self.x = y
            self.vote_to_halt()
        def f(self, y: Missing) -> Missing:
            return y + 1
    """
    assert run(run_cell(source)["P"](), PATH, device="cpu")["x"].tolist() == [3, 3, 3]
