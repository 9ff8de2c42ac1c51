"""A job of the interpreter with state logs, and `sigps run` of it in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

JOB = """
program: program.py:Echo
graph: {generator: {grid: {rows: 7, columns: 7}}}
engine: {device: python}
checkpoint: {every: 3, dir: log}
output: {top: 0}
"""


def start(folder: Path, *arguments: object, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [*under, sys.executable, "-P", "-m", "sigps", "run", "job.yaml", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
