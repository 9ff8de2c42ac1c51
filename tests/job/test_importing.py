"""Naming a program: what is found, and the error where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cells import program_of

from sigps import Graph, run
from sigps.errors import CompileError, ConfigError
from sigps.job.importing import import_program
from sigps.model.vertex import Vertex

SOURCE = """
from sigps import State, Vertex

class Degree(Vertex):
    degree: State[int] = 0
    def compute(self, messages):
        self.degree = self.out_degree
        self.vote_to_halt()

class Plain:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)
    return tmp_path


def test_a_class_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = import_program("mine.py:Degree")
    assert issubclass(found, Vertex)
    assert [f.name for f in found.declaration.states] == ["degree"]
    monkeypatch.chdir("/")
    assert import_program("mine.py:Degree", folder).__name__ == "Degree"
    assert import_program(f"{folder}/mine.py:Degree").__name__ == "Degree"


def test_a_class_of_a_module_in_the_current_directory(folder: Path) -> None:
    (folder / "degrees_of_test.py").write_text(SOURCE)
    assert import_program("degrees_of_test:Degree").__module__ == "degrees_of_test"


def test_a_file_named_like_a_module_hides_nothing(folder: Path) -> None:
    import random

    (folder / "random.py").write_text(SOURCE)
    import_program("random.py:Degree")
    assert sys.modules["random"] is random


def test_a_file_imports_what_lies_beside_it(folder: Path) -> None:
    (folder / "neighbour_of_test.py").write_text(SOURCE)
    (folder / "other.py").write_text("from neighbour_of_test import Degree\n")
    assert import_program("other.py:Degree").__module__ == "neighbour_of_test"


def test_an_edited_file_is_read_again(folder: Path) -> None:
    import_program("mine.py:Degree")
    (folder / "mine.py").write_text(SOURCE.replace("degree: State[int]", "outgoing: State[int]"))
    assert [f.name for f in import_program("mine.py:Degree").declaration.states] == ["outgoing"]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("mine", "names no class"),
        ("mine.py", "names no class"),
        ("mine.py:", "names no class"),
        (":Degree", "names no class"),
        ("mine.py:Degre", "has no class 'Degre'; did you mean 'Degree'? It has: Degree"),
        ("mine.py:Plain", "Plain is no subclass of sigps.Vertex"),
        ("mine.py:Vertex", "Vertex is the base class"),
        ("absent.py:Degree", "there is no file"),
        ("folder/absent.py:Degree", "there is no file"),
        ("no_such_module_here:Degree", "there is no module 'no_such_module_here'"),
        ("sigps.no_such_module:Degree", "there is no module 'sigps.no_such_module'"),
        ("sigps.errors:SigpsError", "It has no vertex programs"),
    ],
)
def test_refused(folder: Path, spec: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        import_program(spec)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint", "line"),
    [
        ("x = 1\nclass :\n", "SyntaxError", 2),
        ("x = 1\n\ny = 1 / 0\n", "ZeroDivisionError: division by zero", 3),
        ("import no_such_module_here\n", "No module named 'no_such_module_here'", 1),
    ],
)
def test_an_import_that_fails_names_the_place(folder: Path, text: str, complaint: str, line: int) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        import_program("broken.py:Degree")
    assert complaint in str(caught.value)
    assert f"broken.py:{line}" in str(caught.value)


def test_an_error_of_the_class_itself_is_passed_on(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "from sigps import State, Vertex\nclass A(Vertex):\n    x: State[str] = ''\n"
    )
    with pytest.raises(CompileError, match="not supported"):
        import_program("bad.py:A")


def test_a_script_is_imported_up_to_its_run(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        "import sigps\n"
        "class Before(sigps.Vertex):\n    def compute(self, messages):\n        self.vote_to_halt()\n"
        "try:\n    sigps.run(Before(), sigps.Graph.from_edges([0], [1]), progress=print)\n"
        "except Exception:\n    pass\n"
        "class After(Before):\n    pass\n"
    )
    program = import_program(f"{file}:Before")
    assert program.__name__ == "Before"
    assert run(program(), Graph.from_edges([0], [1]), device="python").reason == "converged"
    with pytest.raises(ConfigError, match="has no class 'After'"):
        import_program(f"{file}:After")


def test_a_notebook_shows_the_users_lines_and_the_message() -> None:
    program = program_of("self.x = self.superstepp")
    try:
        run(program, Graph.from_edges([0], [1]), device="cpu")
    except CompileError as error:
        shown = error._render_traceback_()
    assert len(shown) == 2
    assert shown[0].endswith('run(program, Graph.from_edges([0], [1]), device="cpu")')
    assert shown[1].startswith("CompileError: ")
    assert "did you mean self.superstep?" in shown[1]
