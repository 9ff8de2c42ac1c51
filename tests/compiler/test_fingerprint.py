"""The description of a class: kept while nothing that it was made of changes, and never longer."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from cells import run_cell

from sigps import Graph, run
from sigps.compiler.fingerprint import class_fingerprint

CELL = """
    import held_module
    FACTOR = 2
    LIMITS = [1, 2]
    class Offer(NamedTuple):
        gain: int
    def scaled(x, by=3):
        return x * FACTOR * by
    class Base(Vertex, message=int):
        step = 1
        def begin(self):
            return self.step
    class Program(Base, message=int):
        x: State[int] = 0
        total = Aggregator.sum(int)
        @property
        def twice(self):
            return 2 * self.x
        @staticmethod
        def shifted(x):
            return x + held_module.SHIFT
        def compute(self, messages):
            offer = Offer(7)
            self.x = scaled(self.begin()) + self.shifted(offer.gain) + self.twice
            self.total += self.x
            self.vote_to_halt()
"""


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    held = types.ModuleType("held_module")
    held.SHIFT = 5  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "held_module", held)
    return run_cell(CELL)


def set_in(owner: str, name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda names: setattr(names[owner], name, value)


def rename_a_method(names: dict[str, Any]) -> None:
    """The class has as many attributes of the same values in the same places, one by another name."""
    cls, later = names["Base"], []
    for name in [n for n in vars(cls) if not n.startswith("__")]:
        later.append((name, vars(cls)[name]))
        delattr(cls, name)
    for name, value in later:
        setattr(cls, "stride" if name == "step" else name, value)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a global": lambda names: names.update(FACTOR=3),
    "an equal global of another type": lambda names: names.update(FACTOR=2.0),
    "a global that hides a built-in name": lambda names: names.update(Offer=None),
    "a helper": lambda names: run_cell("def scaled(x, by=3):\n    return x + FACTOR", names),
    "the code of a helper": lambda names: setattr(
        names["scaled"], "__code__", (lambda x, by=3: x - by).__code__
    ),
    "a default": set_in("scaled", "__defaults__", (4,)),
    "a keyword default": set_in("scaled", "__kwdefaults__", {"by": 4}),
    "an attribute of the class": set_in("Program", "x", 1),
    "an attribute of a base": set_in("Base", "step", 9),
    "the name of an attribute": rename_a_method,
    "an attribute more": set_in("Program", "more", 1),
    "a method": lambda names: setattr(names["Program"], "twice", property(lambda self: self.x)),
    "an attribute of a module": lambda names: setattr(names["held_module"], "SHIFT", 6),
    "an aggregator": lambda names: setattr(vars(names["Program"])["total"], "persistent", True),
    "the fields of a named tuple": lambda names: names["Offer"].__annotations__.update(gain=float),
    "the bases": lambda names: setattr(
        names["Program"], "__bases__", (type("Other", (names["Base"],), {"y": 1}),)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_noticed(change: str, names: dict[str, Any]) -> None:
    cls = names["Program"]
    before = class_fingerprint(cls)
    assert class_fingerprint(cls) is before
    CHANGES[change](names)
    after = class_fingerprint(cls)
    assert after != before
    cls.declaration.kept.clear()
    assert class_fingerprint(cls) == after


def test_what_may_change_in_place_is_described_each_time(names: dict[str, Any]) -> None:
    run_cell("def scaled(x, by=3):\n    return x * LIMITS[0]", names)
    before = class_fingerprint(names["Program"])
    assert class_fingerprint(names["Program"]) == before
    names["LIMITS"].append(3)
    assert class_fingerprint(names["Program"]) != before
    made = """
        def make(k):
            class Program(Vertex, message=int):
                x: State[int] = 0
                def compute(self, messages):
                    self.x = k
            def change(new):
                nonlocal k
                k = new
            return Program, change
    """
    cls, change = run_cell(made)["make"](1)
    before = class_fingerprint(cls)
    change(2)
    assert class_fingerprint(cls) != before


def test_a_class_that_was_described_is_not_kept_alive(names: dict[str, Any]) -> None:
    class_fingerprint(names["Program"])
    gone = weakref.ref(names["Program"])
    names.clear()
    gc.collect()
    assert gone() is None


def test_a_run_follows_a_global_that_changed() -> None:
    cell = """
        FACTOR = 2
        class Program(Vertex, message=int):
            x: State[int] = 0
            def compute(self, messages):
                self.x = FACTOR * self.id
                self.vote_to_halt()
    """
    names, graph = run_cell(cell), Graph.from_edges([0, 1], [1, 2])
    found = []
    for factor in (2, 2, 5):
        names["FACTOR"] = factor
        found.append(run(names["Program"](), graph, device="cpu")["x"].tolist())
    assert found == [[0, 2, 4], [0, 2, 4], [0, 5, 10]]
