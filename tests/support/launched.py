"""Processes that tests start: waiting for their end, and whether they still run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

SECONDS = 90


def end_of(process: subprocess.Popen[str], seconds: float = SECONDS) -> tuple[int, str, str]:
    """Return exit code, output and errors; kill the whole session if the process does not end in time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"still running after {seconds} s\n{out}\n{err}")
    return process.returncode, out, err


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
