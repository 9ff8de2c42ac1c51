"""NetworkX's own tests run against the backend; and how many calls it answered, so that falling back is no pass."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import served_calls

SUITES = {
    "networkx.algorithms.components": {"strongly_connected_components": 8, "connected_components": 8},
    "networkx.algorithms.link_analysis": {"pagerank": 10},
}
"""Test packages of NetworkX, and the least calls of functions that they reach the backend with."""


def test_networkx_finds_the_backend() -> None:
    for group in ("networkx.backends", "networkx.backend_info"):
        names = [entry.name for entry in importlib.metadata.entry_points(group=group)]
        assert "sigps" in names, f"no entry point in {group}: install sigps again (pip install -e .)"


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_networkx_own_tests(suite, tmp_path) -> None:
    calls = tmp_path / "calls.json"
    environment = {
        **os.environ,
        "NETWORKX_TEST_BACKEND": "sigps",
        "NETWORKX_FALLBACK_TO_NX": "True",
        "SERVED_CALLS": str(calls),
        "PYTHONPATH": os.pathsep.join([str(Path(served_calls.__file__).parent), *filter(None, sys.path)]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "served_calls"]
    command += ["-c", os.devnull, "--pyargs", suite]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    served = json.loads(calls.read_text())
    missing = {
        name: (served.get(name, 0), least)
        for name, least in SUITES[suite].items()
        if served.get(name, 0) < least
    }
    assert not missing, f"answered, and wanted: {missing}"
