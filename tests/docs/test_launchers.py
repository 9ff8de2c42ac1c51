"""The recipes for launchers: the batch script runs without its launcher, and the manifest has the form of a Job."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml
from places import REPOSITORY

import sigps

DOCS = REPOSITORY / "docs" / "how-to"
POOL = "devices: python\nsocket: s\nsnapshots: states\ngraphs: {web: {path: web.txt}}\n"


def blocks_of(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_script_with_a_server_runs(tmp_path: Path) -> None:
    script = blocks_of(DOCS / "slurm.md", "bash")[1]
    (tmp_path / "script.sh").write_text(script)
    (tmp_path / "web.txt").write_text("0 1\n1 2\n")
    runtime = tmp_path / "run"
    runtime.mkdir()
    (tmp_path / "pool.yaml").write_text(POOL.replace("socket: s\n", ""))
    for name, program in (("ranks", "PageRank"), ("levels", "BFS")):
        params = "{source: 0}" if program == "BFS" else "{}"
        job = f"program: sigps.apps:{program}\nparams: {params}\ngraph: {{path: web.txt}}\n"
        (tmp_path / f"{name}.yaml").write_text(job)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(REPOSITORY)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    ended = subprocess.run(
        ["bash", "script.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert sigps.read_result(tmp_path / "levels.parquet").to_pydict()["level"] == [0, 1, 2]
    assert len(sigps.read_result(tmp_path / "ranks.parquet")) == 3
    assert list((tmp_path / "states").iterdir()) == []
    assert list(runtime.iterdir()) == []


def test_the_manifest_is_a_job() -> None:
    (text,) = blocks_of(DOCS / "kubernetes.md", "yaml")
    manifest = yaml.safe_load(text)
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
    pod = manifest["spec"]["template"]["spec"]
    mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert pod["restartPolicy"] in ("OnFailure", "Never")
