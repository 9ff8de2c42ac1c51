"""Jobs in tasks and actors of a local Ray, as a script of a user would have them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigps
import sigps.ray
from sigps import ConfigError
from sigps.apps import BFS

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'sigps[ray]'"
)

SCRIPT = '''
import json, sys
import ray
import sigps, sigps.ray
from sigps import ConfigError, Param, State, Vertex
from sigps.apps import BFS, PageRank

class Marks(Vertex, message=int):
    """A program of this script, which workers get from Ray."""
    step: Param[int]
    value: State[int] = 0
    def compute(self, messages):
        self.value = self.step * self.out_degree
        self.vote_to_halt()

@ray.remote(num_cpus=1)
def marks(step):
    graph = sigps.generate("rmat", scale=6, seed=1)
    given = sigps.ray.share()
    return given, sigps.ray.table_of(sigps.run(Marks(step=step), graph, **given))

found = {}
try:
    sigps.ray.share()
except ConfigError as error:
    found["outside"] = str(error)
ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False)
try:
    found["driver"] = str(sigps.ray.share())
except ConfigError as error:
    found["driver"] = str(error)
found["given"], table = ray.get(marks.remote(3))
found["marks"] = table["value"].to_pylist()
actor = sigps.ray.pool_actor({"rmat": sigps.generate("rmat", scale=6, seed=1)}, num_cpus=2, quantum=0.01)
tables = ray.get([actor.run.remote(BFS(source=s), "rmat", tenant=str(s)) for s in (0, 5, 9)])
found["levels"] = [table["level"].to_pylist() for table in tables]
found["about"] = json.loads(tables[1].schema.metadata[b"sigps"])
long = actor.run.remote(PageRank(iterations=10**7, tolerance=0.0), "rmat")
ray.get(actor.run.remote(BFS(source=1), "rmat"))
ray.cancel(long)
try:
    ray.get(long)
except Exception as error:
    found["cancelled"] = type(error).__name__
try:
    ray.get(actor.run.remote(BFS(source=-4), "rmat"))
except sigps.GraphError as error:
    found["wrong"] = str(error).splitlines()[-1]
rows = ray.get(actor.jobs.remote())
while any(row["state"] not in ("done", "failed", "cancelled") for row in rows):
    rows = ray.get(actor.jobs.remote())
found["states"] = sorted(row["state"] for row in rows)
ray.shutdown()
json.dump(found, open(sys.argv[1], "w"))
'''


@needs_ray
@pytest.mark.slow
def test_tasks_and_an_actor_of_a_local_ray(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(
        [sys.executable, "script.py", "found.json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    graph = sigps.generate("rmat", scale=6, seed=1)
    assert found["given"] == {"device": "cpu", "threads": 1}
    assert found["marks"] == (3 * np.asarray(graph.out_degrees())).tolist()
    for source, levels in zip((0, 5, 9), found["levels"], strict=True):
        assert levels == sigps.run(BFS(source=source), graph, device="python")["level"].tolist()
    assert (found["about"]["reason"], found["about"]["device"]) == ("converged", "cpu")
    assert "TaskCancelledError" in found["cancelled"]
    assert "there is no vertex -4" in found["wrong"]
    assert found["states"] == ["cancelled", "done", "done", "done", "done", "failed"]
    assert "inside one" in found["outside"]
    assert "inside one" in found["driver"]


def test_several_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="Ray gave 2 GPUs"):
        sigps.ray._options(4.0, 2.0)
