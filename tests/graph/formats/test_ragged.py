from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import write
from hypothesis import given
from hypothesis import strategies as st

from sigps.errors import GraphError
from sigps.graph.formats.blocks import Block, TextFile
from sigps.graph.formats.ragged import ListedTwice, RaggedParser
from sigps.group import Alone


def parse(path: Path, text: str, **options: Any) -> Any:
    """Return the lines of a block that is a whole file."""
    parser = RaggedParser(TextFile(write(path / "g", text or "\n")), ("#", "%"), **options)
    return parser.parse(Block(text.encode(), 0))


def test_fields_and_counts(tmp_path: Path) -> None:
    lines = parse(tmp_path, "1 2  3\n\n#4 5\n \t6\r\n -7 8 \n")
    assert lines.fields.tolist() == [1, 2, 3, 6, -7, 8]
    assert lines.counts.tolist() == [3, 0, 1, 2]
    assert lines.first_fields.tolist() == [0, 3, 3, 4]
    assert (lines.num_lines, lines.num_comments) == (4, 1)


def test_separators_and_types(tmp_path: Path) -> None:
    lines = parse(tmp_path, "1: 2,3;4\n", separators=",;:")
    assert lines.fields.tolist() == [1, 2, 3, 4]
    assert parse(tmp_path, "a:b c\n", separators=":", type="string").fields.tolist() == ["a", "b", "c"]
    assert parse(tmp_path, "1 .5\n2e3\n", type="float64").fields.tolist() == [1, 0.5, 2000]


def test_lines_of_other_ranks_are_only_counted(tmp_path: Path) -> None:
    parser = RaggedParser(TextFile(write(tmp_path / "g", "x")), ("#",))
    lines = parser.parse(Block(b"1 2\nnot a number\n\n # c\n", 0, is_own=False))
    assert (lines.num_lines, lines.num_comments, lines.fields.size) == (3, 1, 0)


@given(st.lists(st.one_of(st.lists(st.integers(-(2**63), 2**63 - 1)), st.just(None))), st.sampled_from(" \t"))
def test_any_lines_equal_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int] | None], blank: str
) -> None:
    text = "".join("# 1\n" if row is None else blank.join(map(str, row)) + "\n" for row in rows)
    lines = parse(tmp_path_factory.mktemp("g"), text)
    kept = [row for row in rows if row is not None]
    assert lines.counts.tolist() == [len(row) for row in kept]
    assert lines.fields.tolist() == [value for row in kept for value in row]
    assert lines.num_comments == len(rows) - len(kept)


@pytest.mark.parametrize(
    ("type", "word", "rule"),
    [
        ("int64", "1.5", "an integer within int64"),
        ("int64", "9223372036854775808", "an integer within int64"),
        ("int64", "+1", "an integer within int64"),
        ("float64", "x", "a number"),
        ("string", "\udcff", "UTF-8"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, type: str, word: str, rule: str) -> None:
    text = b"1 2\n#\n3 " + word.encode("utf-8", errors="surrogateescape") + b"\n"
    parser = RaggedParser(TextFile(write(tmp_path / "g", text)), ("#",), type=type)
    with pytest.raises(GraphError, match=rf"g:3: .* is not {rule}, in '3 "):
        parser.parse(Block(text, 0))


def check(
    listings: list[tuple[Any, Any]], weights: list[float] | None = None, cuts: tuple[int, ...] = ()
) -> tuple[list[bool], int]:
    """Return which listings stand for an edge, and the number of edges."""
    sources, targets = (np.array(ends) for ends in zip(*listings, strict=True))
    values = None if weights is None else np.array(weights)
    twice = ListedTwice()
    stands = []
    for start, stop in zip((0, *cuts), (*cuts, len(listings)), strict=True):
        part = None if values is None else values[start:stop]
        stands += twice.take(sources[start:stop], targets[start:stop], part).tolist()
    return stands, twice.check(Path("g"), Alone(), "advice")


@pytest.mark.parametrize("cuts", [(), (1,), (2, 2, 3)])
def test_pairs_and_loops_count_once(cuts: tuple[int, ...]) -> None:
    assert check([(1, 2), (2, 1), (3, 3), (2, 3), (3, 2)], cuts=cuts) == ([True, False, True, True, False], 3)
    names = [("a", "b"), ("b", "a"), ("bcd", "b"), ("b", "bcd")]
    assert check(names, [1, 1, 2, 2], cuts=cuts) == ([True, False, False, True], 2)


@pytest.mark.parametrize(
    ("listings", "weights"),
    [
        ([(1, 2)], None),
        ([(1, 2), (2, 1), (2, 3)], None),
        ([(1, 2), (3, 1)], None),
        ([(1, 2), (3, 2)], None),
        ([(1, 2), (2, 1)], [1.0, 2.0]),
        ([(1, 2), (1, 2), (2, 1)], None),
        ([(1, 2), (2, 3), (3, 1), (4, 2)], None),
        ([("a", "bc"), ("c", "ab")], None),
        ([(-1, 2), (2, 1)], None),
    ],
)
def test_edges_listed_once_are_refused(listings: list[Any], weights: list[float] | None) -> None:
    with pytest.raises(GraphError, match=r"g: .*list each edge at both.* advice"):
        check(listings, weights)
