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
    "centrality and components": (
        [
            "centrality",
            "components",
            "link_analysis",
            "coloring",
            "tests.test_bridges",
            "tests.test_cluster",
            "tests.test_core",
        ],
        {
            "betweenness_centrality": 30,
            "bridges": 3,
            "clustering": 8,
            "connected_components": 8,
            "core_number": 3,
            "eigenvector_centrality": 5,
            "greedy_color": 8,
            "k_truss": 3,
            "katz_centrality": 8,
            "pagerank": 10,
            "strongly_connected_components": 8,
            "triangles": 8,
        },
    ),
    "paths and orders": (
        [
            "shortest_paths",
            "flow.tests.test_maxflow",
            "traversal",
            "tree.tests.test_mst",
            "tree.tests.test_recognition",
            *(
                f"tests.test_{name}"
                for name in ("dag", "efficiency", "matching", "mis", "simple_paths", "wiener")
            ),
        ],
        {
            "bfs_edges": 6,
            "maximal_matching": 5,
            "maximum_flow_value": 1,
            "minimum_spanning_edges": 5,
            "has_path": 50,
            "shortest_simple_paths": 8,
            "single_source_dijkstra": 7,
            "topological_sort": 8,
            "wiener_index": 5,
        },
    ),
}
"""Test packages in networkx.algorithms, and the least calls of functions that they reach the backend with."""


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
    packages, wanted = SUITES[suite]
    command += ["-c", os.devnull, "--pyargs", *(f"networkx.algorithms.{package}" for package in packages)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    served = json.loads(calls.read_text())
    missing = {
        name: (served.get(name, 0), least) for name, least in wanted.items() if served.get(name, 0) < least
    }
    assert not missing, f"answered, and wanted: {missing}"
