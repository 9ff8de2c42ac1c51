"""What a person reads of a run."""

from __future__ import annotations

import pytest

from sigps.cli.report import (
    console,
    superstep_table,
    top_table,
    trace_text,
)
from sigps.engine.stats import SuperstepStats
from sigps.graph.report import bytes_text


def supersteps(count: int) -> list[SuperstepStats]:
    return [SuperstepStats(s, "push", 10**12 + s, 10**14, 5_000_000, 0.5, 1.25) for s in range(count)]


def printed(capsys: pytest.CaptureFixture[str], shown: object) -> list[str]:
    console().print(shown)
    return capsys.readouterr().out.splitlines()


def test_no_number_is_cut_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, superstep_table(supersteps(1)))
    assert lines[1].split() == [
        "0",
        "push",
        "1,000,000,000,000",
        "100,000,000,000,000",
        "4.8",
        "MiB",
        "500",
        "ms",
        "1.25",
    ]


def test_of_many_supersteps_the_first_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    firsts = [line.split()[0] for line in printed(capsys, superstep_table(supersteps(100)))]
    assert firsts == ["superstep", *"012345", "...", *(str(s) for s in range(94, 100))]
    assert len(printed(capsys, superstep_table(supersteps(12)))) == 13


def test_top_table_prints_ids_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, top_table("rank", [("[bold]x", 0.123456789), (3, 9223372036854775807)]))
    assert [line.split() for line in lines] == [
        ["highest", "rank"],
        ["id", "rank"],
        ["[bold]x", "0.123457"],
        ["3", "9223372036854775807"],
    ]


def test_other_ranks_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    console(rank=1).print("text")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("num_bytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1024**4 * 5000, "5000.0 TiB")]
)
def test_bytes_text(num_bytes: int, text: str) -> None:
    assert bytes_text(num_bytes) == text


def test_trace_text() -> None:
    record = {
        "superstep": 1,
        "id": 7,
        "messages": [2.0],
        "before": {"distance": 5.0},
        "after": {"distance": 2.0},
        "sent": [(8, 3.0)],
        "halted": True,
    }
    text = "superstep 1, vertex 7: reads [2.0]; distance 5.0 -> 2.0; sends [(8, 3.0)]; halts"
    assert trace_text(record) == text
