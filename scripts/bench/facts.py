"""What a benchmark's result says of where it was measured."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine_facts(*packages: str) -> dict[str, Any]:
    """Return the date, the commit, the processor and the versions."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "llvmlite", *packages)}
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def driver_version() -> str:
    """Return the NVIDIA driver's own version, as in 580.159; empty where it is not known."""
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
