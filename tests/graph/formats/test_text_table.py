from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import write
from hypothesis import given
from hypothesis import strategies as st

from sigps.errors import GraphError
from sigps.graph.formats.blocks import Block, TextFile
from sigps.graph.formats.text_table import WHITESPACE, Column, Layout, clean, in_order, read_rows, split_line
from sigps.group import Alone

ENDS = {
    "source": Column(0, "int64", "source id", hint="ask for text"),
    "target": Column(1, "int64", "target id"),
}


def rows_of(
    path: Path, layout: Layout, block_bytes: int = 1 << 20, start: int = 0
) -> tuple[dict[str, Any], int]:
    """Return all columns as lists, and how many lines were skipped."""
    parts = list(read_rows(TextFile(path, block_bytes=block_bytes), layout, Alone(), start=start))
    names = [name for name, column in layout.columns.items() if column.literal is None]
    columns = {name: np.concatenate([part.columns[name] for part in parts]).tolist() for name in names}
    assert all(part.columns[name].size == part.num_rows for part in parts for name in names)
    return columns, sum(part.num_skipped for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n3 4\n",
        "1\t2\n3\t4\n",
        "1  2\n3 4",
        "  1 \t 2  \n3\t4\r\n",
        "1 2\r\n3 4\r\n",
        "\n1 2\n\n   \n3 4\n\n",
        "# one\n1 2\n  # two 2\n3 4\n%%x\n",
        "1 2\n#5 6\n3 4\n",
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 6, 1 << 20])
def test_blanks_and_comments(tmp_path: Path, text: str, block_bytes: int) -> None:
    layout = Layout(ENDS, 2, comments=("#", "%"))
    columns, num_skipped = rows_of(write(tmp_path / "g", text), layout, block_bytes)
    assert columns == {"source": [1, 3], "target": [2, 4]}
    assert num_skipped == len(text.splitlines()) - 2


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.integers(-(2**63), 2**63 - 1),
                st.integers(0, 99),
                st.sampled_from([" ", "\t", "  ", " \t"]),
            ),
            st.sampled_from(["", "  ", "# c", " #1 2", "\t%"]),
        ),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([1, 9, 1 << 20]),
)
def test_any_mixture_equals_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], end: str, block_bytes: int
) -> None:
    text = "".join((f"{x[0]}{x[2]}{x[1]}" if isinstance(x, tuple) else x) + end for x in lines)
    edges = [(x[0], x[1]) for x in lines if isinstance(x, tuple)]
    path = write(tmp_path_factory.mktemp("g") / "g", text)
    columns, num_skipped = rows_of(path, Layout(ENDS, 2, comments=("#", "%")), block_bytes)
    assert list(zip(columns["source"], columns["target"], strict=True)) == edges
    assert num_skipped == len(lines) - len(edges)


def test_columns_types_and_delimiters(tmp_path: Path) -> None:
    columns = {
        "b": Column(2, "float32", "b"),
        "name": Column(0, "string", "name"),
        "w": Column(3, "float64", "w"),
    }
    path = write(tmp_path / "g.csv", 'ann,7,1.5,-2e3\n"bob, jr",8,2,.5\nzoë,9,3.25,1\n')
    values, num_skipped = rows_of(path, Layout(columns, 4, delimiter=","))
    assert values == {"b": [1.5, 2, 3.25], "name": ["ann", "bob, jr", "zoë"], "w": [-2000, 0.5, 1]}
    assert num_skipped == 0


def test_tabs_alone_separate_where_asked(tmp_path: Path) -> None:
    names = {"a": Column(0, "string", "a"), "b": Column(1, "string", "b")}
    path = write(tmp_path / "g", "New York\tSan José\n#1\tx y z\n")
    values, _ = rows_of(path, Layout(names, 2, delimiter="\t"))
    assert values == {"a": ["New York", "#1"], "b": ["San José", "x y z"]}


def test_start_and_empty_blocks(tmp_path: Path) -> None:
    path = write(tmp_path / "g", "head\n# only\n# comments\n1 2\n")
    values, num_skipped = rows_of(path, Layout(ENDS, 2, comments=("#",)), block_bytes=4, start=len("head\n"))
    assert values == {"source": [1], "target": [2]}
    assert num_skipped == 2


def test_a_literal_column_is_checked_and_left_out(tmp_path: Path) -> None:
    columns = {**{n: Column(c.index + 1, c.type, c.what) for n, c in ENDS.items()}}
    columns["tag"] = Column(0, "string", "letter", literal="a")
    layout = Layout(columns, 3, comments=("c",))
    values, _ = rows_of(write(tmp_path / "g", "a 1 2\nc 3 4\na 5 6\n"), layout)
    assert values == {"source": [1, 5], "target": [2, 6]}
    with pytest.raises(GraphError, match=r"bad:2: 'x' stands where 'a' must, in 'x 3 4'"):
        rows_of(write(tmp_path / "bad", "a 1 2\nx 3 4\n"), layout)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("3", r"'3' has 1 field, but the rows of this file have 3, separated by blanks. read on"),
        ("3 4", r"'3 4' has 2 fields"),
        ("3 4 5 6", r"'3 4 5 6' has 4 fields"),
        ("x 4 1", r"the source id 'x' is not an integer, in 'x 4 1'. ask for text"),
        ("3 4.0 1", r"the target id '4.0' is not an integer"),
        ("3 1e3 1", r"the target id '1e3' is not an integer"),
        ("+3 4 1", r"the source id '\+3' is not an integer"),
        ("nan 4 1", r"the source id 'nan' is not an integer"),
        ("9223372036854775808 4 1", r"the source id 9223372036854775808 is outside int64"),
        ("-0x10 4 1", r"the source id '-0x10' is not an integer"),
        ("0x1g 4 1", r"the source id '0x1g' is not an integer"),
        ("3 4 y", r"the weight 'y' is not a number"),
        ("3 4 nan", r"the weight is nan, but it must be a finite number"),
        ("3 4 -inf", r"the weight is -inf, but"),
        ("3 4 1e999", r"the weight is 1e999, but"),
        ("3 4 1_0", r"the weight '1_0' is not a number"),
        ("٣ 4 1", r"the source id '٣' is not an integer"),
    ],
)
@pytest.mark.parametrize("block_bytes", [4, 1 << 20])
def test_what_is_wrong_with_a_row_and_where(tmp_path: Path, line: str, wrong: str, block_bytes: int) -> None:
    layout = Layout({**ENDS, "weight": Column(2, "float64", "weight")}, 3, comments=("#",), hint="read on")
    path = write(tmp_path / "g.txt", f"# c\n1 2 1\n\n5 6 .5\n{line}\n7 8 1\n")
    with pytest.raises(GraphError, match=r"g\.txt:5: " + wrong):
        rows_of(path, layout, block_bytes)


def test_bounds(tmp_path: Path) -> None:
    layout = Layout({"v": Column(0, "int64", "id", bounds=(1, 3))}, 1)
    assert rows_of(write(tmp_path / "g", "1\n3\n2\n"), layout)[0] == {"v": [1, 3, 2]}
    for value in (0, 4, -1):
        with pytest.raises(GraphError, match=rf"g:2: the id {value} is outside 1\.\.3"):
            rows_of(write(tmp_path / "g", f"1\n{value}\n"), layout)


def test_int32_overflow(tmp_path: Path) -> None:
    layout = Layout({"v": Column(0, "int32", "time")}, 1)
    with pytest.raises(GraphError, match="the time 2147483648 is outside int32"):
        rows_of(write(tmp_path / "g", "2147483648\n"), layout)


def test_empty_fields_and_bad_text(tmp_path: Path) -> None:
    layout = Layout(ENDS, 2, delimiter=",")
    with pytest.raises(GraphError, match=r"g:2: the target id '' is not an integer"):
        rows_of(write(tmp_path / "g", "1,2\n3,\n"), layout)
    names = {"a": Column(0, "string", "name"), "b": Column(1, "string", "name")}
    with pytest.raises(GraphError, match=r"g:1: the name is empty"):
        rows_of(write(tmp_path / "g", ",2\n"), Layout(names, 2, delimiter=","))
    with pytest.raises(GraphError, match=r"g:2: .* is not UTF-8 text"):
        rows_of(write(tmp_path / "g", b"a,b\n\xff\xfe,b\n"), Layout(names, 2, delimiter=","))


def test_hexadecimal_ids_are_numbers(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path / "g", "0x10 2\n"), Layout(ENDS, 2))[0] == {"source": [16], "target": [2]}


def test_clean_keeps_single_delimiters() -> None:
    layout = Layout({}, 0, comments=("//",))
    assert clean(b" a\t\tb \n//x\n / y\n\n//\nc", layout) == b"a b\n/ y\n\nc"
    assert clean(b"//x\n", layout) == b""
    commas = Layout({}, 0, delimiter=",", comments=("#",))
    assert clean(b"a,,b\n#c\n\t,d\n", commas) == b"a,,b\n\t,d\n"


def test_split_line() -> None:
    assert split_line(b" a\tb  c\r\n", WHITESPACE) == ["a", "b", "c"]
    assert split_line(b'a,"b,c",\n', ",") == ["a", "b,c", ""]
    assert split_line(b"", ",") == []


def test_work_is_handed_back_in_order() -> None:
    """Later blocks are done before the first one."""

    def work(block: Block) -> int:
        time.sleep(0.02 if block.offset % 3 == 0 else 0)
        return block.offset

    blocks = (Block(b"\n", offset) for offset in range(20))
    assert list(in_order(work, blocks, Alone())) == list(range(20))


def test_an_error_in_a_thread_reaches_the_caller_and_stops_reading() -> None:
    drawn = []

    def blocks() -> Any:
        for offset in range(1000):
            drawn.append(offset)
            yield Block(b"\n", offset)

    def work(block: Block) -> int:
        if block.offset == 5:
            raise GraphError("five")
        return block.offset

    with pytest.raises(GraphError, match="five"):
        list(in_order(work, blocks(), Alone()))
    assert len(drawn) < 100


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('"x,y', "a quote has no partner in its line"),
        ('x"y,z', "a quote has no partner in its line"),
        ('x"",y', "a quote stands inside a field"),
        ('"x"y,z', "a quote stands inside a field"),
        ('x, "y"', "a quote stands inside a field"),
        ('"x","y""', "a quote has no partner in its line"),
        ('"x"",""y"', "a quote stands inside a field|has 1 field"),
    ],
)
@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
@pytest.mark.parametrize("place", [0, 1])
def test_stray_and_unterminated_quotes(
    tmp_path: Path, line: str, wrong: str, block_bytes: int, place: int
) -> None:
    """Also in columns that are not read, and where a later quote would close the first."""
    path = write(tmp_path / "g.csv", f'"a,1",b\n{line}\n"c","d"\n"e""f",g\n')
    layout = Layout({"v": Column(place, "string", "name")}, 2, delimiter=",")
    with pytest.raises(GraphError, match=rf"g\.csv:2: .*({wrong})"):
        rows_of(path, layout, block_bytes)


def test_blanks_around_fields_are_no_part_of_them(tmp_path: Path) -> None:
    names = {"a": Column(0, "string", "name"), "b": Column(1, "string", "name")}
    path = write(tmp_path / "g.csv", ' ann,bob \n"ann ",\tbob\t\nann,new york\n   \n  # no,row\n')
    values, num_skipped = rows_of(path, Layout(names, 2, delimiter=",", comments=("#",)))
    assert values == {"a": ["ann", "ann", "ann"], "b": ["bob", "bob", "new york"]}
    assert num_skipped == 2


def test_a_comment_is_none_though_it_parses_as_a_row(tmp_path: Path) -> None:
    ends = {"source": Column(1, "int64", "source id"), "target": Column(2, "int64", "target id")}
    path = write(tmp_path / "g.csv", "ann,1,2\n#bob,3,4\neve,5,6\n")
    assert rows_of(path, Layout(ends, 3, delimiter=",", comments=("#",)))[0] == {
        "source": [1, 5],
        "target": [2, 6],
    }


def test_numbers_of_any_length_and_field_of_any_length(tmp_path: Path) -> None:
    with pytest.raises(
        GraphError, match=r"g:2: the source id 9+ \.\.\. 9+ 4'|g:2: the source id 9+"
    ) as caught:
        rows_of(write(tmp_path / "g", f"1 2\n{'9' * 5000} 4\n"), Layout(ENDS, 2))
    assert len(str(caught.value)) < 24 * 80
    with pytest.raises(GraphError, match=r"g:1: the source id 0xffffffffffffffff is outside int64"):
        rows_of(write(tmp_path / "g", "0xffffffffffffffff 4\n"), Layout(ENDS, 2))
    names = {"a": Column(0, "string", "name"), "b": Column(1, "string", "name")}
    long = "x" * 200_000
    path = write(tmp_path / "g.csv", f'"{long}",b\n')
    assert rows_of(path, Layout(names, 2, delimiter=","))[0] == {"a": [long], "b": ["b"]}
    assert split_line(f'"{long}",b'.encode(), ",") == [long, "b"]
