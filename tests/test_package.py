"""The package as users and their tools see it."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from places import REPOSITORY

import sigps
from sigps.graph.generators.generate import GENERATORS

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def in_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=240
    ).stdout


def test_a_shell_completes_every_public_name() -> None:
    assert set(dir(sigps)) == {*sigps.__all__, "__version__", "apps"}
    for name in dir(sigps):
        assert getattr(sigps, name) is not None


def test_apps_come_with_the_package_when_they_are_asked_for() -> None:
    printed = in_new_process(
        "import sys, sigps; print('sigps.apps' in sys.modules); print(sigps.apps.PageRank(damping=0.5))"
    )
    late, program = printed.splitlines()
    assert late == "False"
    assert program.startswith("PageRank(damping=0.5, ")


@pytest.mark.parametrize("package", ["pandas", "networkx", "cupy", "llvmlite", "mpi4py", "altair", "rich"])
def test_the_import_is_light(package: str) -> None:
    assert in_new_process(f"import sys, sigps; print({package!r} in sys.modules)") == "False\n"


def test_help_names_generators_and_their_options() -> None:
    text = " ".join((inspect.getdoc(sigps.generate) or "").split())
    for name, function in GENERATORS.items():
        assert f"{name}{_plain(inspect.signature(function))}" in text


def _plain(signature: inspect.Signature) -> str:
    """Return parameters and defaults, without types."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(bare))


def test_every_package_is_installed() -> None:
    packages = {
        ".".join(path.parent.relative_to(REPOSITORY).parts)
        for path in (REPOSITORY / "sigps").rglob("__init__.py")
        if "apps" not in path.relative_to(REPOSITORY).parts
    }
    assert packages | {"sigps.apps"} == set(SETTINGS["tool"]["setuptools"]["packages"])


def test_apps_are_where_static_tools_look() -> None:
    """An editable install is one path to the repository, so `sigps.apps` must lie below it."""
    assert SETTINGS["tool"]["setuptools"]["package-dir"] == {"": "."}
    assert (REPOSITORY / "sigps" / "apps").resolve() == (REPOSITORY / "apps").resolve()
    assert (Path(REPOSITORY) / "sigps" / "py.typed").exists()


def test_constraints_are_versions_that_the_package_allows() -> None:
    project = SETTINGS["project"]
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = ("docs", "io", "metrics", "mpi", "networkx", "polars", "report")
    wanted = [
        *project["dependencies"],
        *(r for extra in extras for r in project["optional-dependencies"][extra]),
    ]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(tested[requirement.name]), requirement
