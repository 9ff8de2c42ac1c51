"""What `scripts/test --quick` selects: every test function that is not slow, and every program, graph and way."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from battery import BATTERY
from covering import covering
from places import REPOSITORY

ROOM = "tests/engine"
"""The room with the largest products of programs, graphs and ways."""


@pytest.mark.parametrize(
    ("tests", "covered", "kept"),
    [
        ([], "", []),
        (["", "", ""], "", [1]),
        (["a", "b", "a"], "", [0, 1]),
        (["a", "b", "a"], "a", [1]),
        (["a", "b"], "ab", [1]),
        (["a", "ab", "b"], "", [1]),
        (["1x", "1y", "1z", "2x", "2y", "2z"], "", [0, 4, 2]),
    ],
)
def test_what_is_kept_has_every_value(tests: list[str], covered: str, kept: list[int]) -> None:
    found = covering([frozenset(test) for test in tests], frozenset(covered))
    assert sorted(found) == sorted(kept)
    assert set("".join(tests[i] for i in found)) | set(covered) >= set("".join(tests))


def collected(*options: str) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-m",
        "not gpu and not slow",
        *options,
        ROOM,
    ]
    command += ["-o", "addopts=--doctest-modules --import-mode=importlib"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stdout.splitlines() if "::" in line]


def test_each_function_is_kept_and_each_graph() -> None:
    everything, quick = collected(), collected("--quick")
    assert set(quick) < set(everything)
    assert len(quick) < len(everything) / 3
    left_out = {test.split("[")[0] for test in everything} - {test.split("[")[0] for test in quick}
    for function in left_out:
        file, name = function.split("::")
        decorators = (REPOSITORY / file).read_text().split(f"def {name}(")[0].split("\n\n\n")[-1]
        assert "@given(" in decorators, function

    def graphs(tests: list[str]) -> set[str]:
        words = {word for test in tests for word in re.split(r"[][-]", test)}
        return words & set(BATTERY)

    assert graphs(quick) == graphs(everything) >= {"skewed", "grid", "string_ids"}
