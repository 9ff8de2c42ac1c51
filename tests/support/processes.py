"""Processes that tests start: waiting for their end, and whether they are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

SECONDS = 120


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def end_of(process: subprocess.Popen[str], seconds: float = SECONDS) -> Outcome:
    """Wait for the end of a process that leads a session; after `seconds`, end all of it and fail the test.

    The process is asked to end first: a launcher ends ranks that are in sessions of their own.
    """
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        pytest.fail(f"still running after {seconds} s\n{out}\n{err}")
    return Outcome(process.returncode, out, err)


def wait_until_gone(pids: list[int]) -> None:
    for _ in range(SECONDS * 20):
        if not any(is_running(pid) for pid in pids):
            return
        time.sleep(0.05)
    raise AssertionError(f"still running: {[pid for pid in pids if is_running(pid)]}")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
