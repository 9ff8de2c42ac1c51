"""Ctrl-C ends a loop inside compute() that never ends, and the process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import sys
from sigps import State, Vertex, generate, run

class Turns(Vertex):
    x: State[int] = 0
    def compute(self, messages):
        n = 1
        while n > 0:
            n = n % 7 + 1 if self.superstep == 0 and ENDLESS else n - 1
        self.x = n
        self.vote_to_halt()

graph = generate("rmat", scale=int(sys.argv[1]), seed=1)
ENDLESS = True
print("begun", flush=True)
try:
    run(Turns(), graph, device="cpu", threads=int(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted")
ENDLESS = False
print(run(Turns(), graph, device="cpu").reason)
"""


@pytest.mark.parametrize(("scale", "threads"), [(3, 1), (16, 2)])
def test_a_loop_that_never_ends(scale: int, threads: int, tmp_path: Path) -> None:
    script = tmp_path / "turns.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-u", str(script), str(scale), str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for _ in range(60):  # until it has compiled, Ctrl-C may meet something else
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            if process.stdout.readline() == "interrupted\n":
                break
        assert process.communicate(timeout=240)[0] == "converged\n"
    finally:
        process.kill()
    assert process.returncode == 0
