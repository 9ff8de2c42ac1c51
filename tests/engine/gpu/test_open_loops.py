"""Loops of compute() that never end: warned of, and ended by Ctrl-C, while a GPU runs them."""

from __future__ import annotations

import ctypes
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cells import program_of
from host_cpp import host_library

from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.open_loops import watching_supersteps
from sigps.native.builder import Functions
from sigps.native.cpp import CppFunctions
from sigps.native.operators import Fault
from sigps.native.types import BOOL, INT, Number, Tuple


def test_a_superstep_that_takes_long_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Two supersteps pass; the third does not end until it has been warned of twice."""
    supersteps: Iterator[int] = iter([0, 1])
    is_warned = threading.Event()

    class Hear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())
            if len(heard) == 2:
                is_warned.set()

    heard: list[str] = []
    log = logging.getLogger("sigps.engine.gpu.open_loops")
    log.addHandler(handler := Hear())
    try:
        with watching_supersteps("Turns", lambda: next(supersteps, 2), seconds=0.01):
            assert is_warned.wait(60)
    finally:
        log.removeHandler(handler)
    assert all("Turns: compute() has run for" in text and "in superstep 2" in text for text in heard)
    assert "does a loop of it end?" in heard[0]


def test_what_ends_soon_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    def never() -> int:
        raise AssertionError("nobody needs to ask")

    with watching_supersteps("Turns", never, seconds=1e6):
        pass
    assert not caplog.records


ENDLESS = {
    "plain": "n = 1\nwhile n > 0:\n    n = n % 7 + 1\nself.x = float(n)",
    "inside_another": (
        "n = k = 1\nwhile k > 0:\n    k = k % 5 + 1\n    while n > 0:\n        n = n % 7 + 1\nself.x = n * 1.0"
    ),
    "with_else": "n = 1\nwhile n > 0:\n    n = n % 7 + 1\nelse:\n    n = 7 // (n - n)\nself.x = float(n)",
    "without_a_test": "n = 1\nwhile True:\n    n = n % 7 + 1",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_emitted_loops_end_where_they_are_interrupted(name: str) -> None:
    derived = analyse(program_of(ENDLESS[name]))
    functions = Functions(derived.module, derived.namespace)
    env, nothing = Tuple((INT,) * 3), Tuple(())
    states = Tuple(tuple(Number.of(d) for d in derived.state_dtypes))
    types = (env, nothing, nothing, env, states, nothing, BOOL, nothing, nothing)
    instance = functions.instance("compute", types)
    cpp = CppFunctions(functions)
    called = cpp.name(instance)
    library = host_library(
        f"""#include "arithmetic.cuh"
{cpp.text}
extern "C" int64_t run(int is_interrupted) {{
  sigps::interrupted_on_host = is_interrupted;
  double x;
  uint8_t flags;
  return {called}(0, 1, 0, 0, 0, 0, 0.0, false, x, flags);
}}"""
    )
    library.run.restype = ctypes.c_int64
    fault = library.run(1)
    assert functions.sites[fault - 1][2] == Fault.INTERRUPTED


def test_only_programs_with_such_loops_can_be_interrupted() -> None:
    pytest.importorskip("cuda.core")
    for body, has_open_loops in ((ENDLESS["plain"], True), ("self.x = sum(range(3)) * 1.0", False)):
        if not has_open_loops:
            body = "for i in range(3):\n    self.x += i"
        derived = analyse(program_of(body + "\nself.vote_to_halt()"))
        compiled = compile_for_cuda(derived, {}, narrow_ids=True, arch="sm_90")
        assert compiled.has_open_loops == has_open_loops


SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
from sigps import State, Vertex, generate, run
from sigps.engine.gpu import open_loops

open_loops._FIRST_SECONDS = 1.0

class Turns(Vertex):
    x: State[int] = 0
    def compute(self, messages):
        n = 1
        while n > 0:
            n = n % 7 + 1 if self.superstep == 2 and ENDLESS else n - 1
        self.x = n
        if self.superstep == 3:
            self.vote_to_halt()

graph = generate("rmat", scale=int(sys.argv[1]), seed=1)
ENDLESS = True
try:
    run(Turns(), graph, device="cuda")
except KeyboardInterrupt:
    print("interrupted", flush=True)
ENDLESS = False
print(run(Turns(), graph, device="cuda").reason)
"""


@pytest.mark.gpu
@pytest.mark.parametrize("scale", [3, 20])
def test_ctrl_c_ends_a_loop_on_a_gpu(scale: int, tmp_path: Path) -> None:
    script = tmp_path / "turns.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-u", str(script), str(scale)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "Turns: compute() has run for" in line
        assert "in superstep 2 on a GPU: does a loop of it end?" in line
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        while (line := process.stdout.readline()) != "interrupted\n":
            assert "does a loop of it end?" in line
            assert time.monotonic() - begun < 60
        assert process.communicate(timeout=240)[0] == "converged\n"
    finally:
        process.kill()
    assert process.returncode == 0
