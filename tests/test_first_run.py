"""What a first run imports, in a new process: each module takes a millisecond or more of what a user waits for."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from sigps.compiler.cpu.native import LOOPS

FIRST_RUN = """
import sys, sigps
from sigps.apps import {program}
graph = sigps.Graph.from_edges([0, 1, 2], [1, 2, 3])
sigps.run({program}({given}), graph, device="cpu")
print(*sorted(name for name in sys.modules if name.startswith("sigps.")))
"""

UNUSED = (
    "sigps.compiler.cuda",
    "sigps.compiler.explain",
    "sigps.costs.memory",
    "sigps.engine.cpu.asynchronous",
    "sigps.engine.cpu.components",
    "sigps.engine.cpu.lanes",
    "sigps.engine.cpu.path_lengths",
    "sigps.graph.fingerprint",
    "sigps.graph.formats.packed_store",
    "sigps.graph.formats.store",
    "sigps.graph.formats.text_table",
    "sigps.graph.packing.unpacker",
    "sigps.graph.versions",
    "sigps.group.watch",
    "sigps.kernels.cpu.lanes",
    "sigps.report.page",
    "sigps.serve",
    "sigps.system.checkpoint",
    "sigps.system.message_center",
)
"""What a run of one rank on a small graph from arrays has no use for."""


def modules_of_first_run(program: str, given: str) -> list[str]:
    code = FIRST_RUN.format(program=program, given=given)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("program", "given"), [("BFS", "source=0"), ("PageRank", "")])
def test_a_first_run_imports_what_it_uses(program: str, given: str) -> None:
    found = modules_of_first_run(program, given)
    assert [name for name in found if name.startswith(UNUSED)] == []


def test_a_result_that_is_written_needs_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    code = f"""
import sys, sigps
graph = sigps.Graph.from_edges(["a", "b"], ["b", "c"])
result = sigps.run(sigps.apps.PageRank(), graph, device="cpu")
result.write({str(tmp_path / "ranks.csv")!r})
result.write({str(tmp_path / "ranks.parquet")!r})
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert (tmp_path / "ranks.csv").read_text().splitlines()[1].startswith('"a",0.')


@pytest.mark.parametrize("module", LOOPS)
def test_loops_are_found_without_importing_all(module: str) -> None:
    """Those of a module that are made of a program's functions, which is their first argument."""
    made = importlib.import_module(f"sigps.kernels.cpu.{module}")
    loops = {
        n
        for n in made.__all__
        if inspect.isfunction(f := getattr(made, n)) and [*inspect.signature(f).parameters] == ["f"]
    }
    parts = {"choose_key", "put_key"}  # which loops of two modules are made with
    assert loops - parts == set(LOOPS[module])
