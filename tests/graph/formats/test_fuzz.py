"""Mutated files are read as plain readers read them, or refused; `format_fuzzer` runs more of them by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from format_fuzzer import TEXTS, Sample, fuzz_binaries, fuzz_texts, judge


@pytest.mark.parametrize("sample", TEXTS, ids=lambda sample: sample.name)
def test_texts_as_they_are(sample: Sample, tmp_path: Path) -> None:
    assert judge(sample, sample.data, tmp_path / sample.name) == "read"


def test_mutated_texts(tmp_path: Path) -> None:
    outcomes = fuzz_texts(400, 19, tmp_path)
    assert outcomes["read"] > 100
    assert outcomes["refused"] > 100


def test_mutated_binaries(tmp_path: Path) -> None:
    outcomes = fuzz_binaries(200, 19, tmp_path)
    assert outcomes["read"] > 20
    assert outcomes["refused"] > 100
