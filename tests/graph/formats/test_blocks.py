from __future__ import annotations

import random
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graph_files import COMPRESSORS, write

from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile, import_optional
from sigps.graph.load import load
from sigps.group import Alone

SUFFIXES = list(COMPRESSORS)
LINES = b"".join(b"%d %d\n" % (i, i * i) for i in range(500))


def a_rank(rank: int, size: int) -> Any:
    """Return a rank that never communicates."""
    return SimpleNamespace(rank=rank, size=size)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("block_bytes", [1, 7, 100, 1 << 20])
def test_blocks_are_whole_lines_and_make_up_the_file(tmp_path: Path, suffix: str, block_bytes: int) -> None:
    source = TextFile(write(tmp_path / f"g.txt{suffix}", LINES), block_bytes=block_bytes)
    blocks = list(source.blocks(Alone()))
    assert b"".join(block.text for block in blocks) == LINES
    assert all(block.text.endswith(b"\n") for block in blocks)
    assert all(LINES[block.offset :].startswith(block.text) for block in blocks)
    assert source.inner_suffix == ".txt"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("start", [0, len(b"0 0\n1 1\n")])
@pytest.mark.parametrize("block_bytes", [5, 64, 1 << 20])
def test_ranks_share_every_line_once_in_order(
    tmp_path: Path, suffix: str, size: int, start: int, block_bytes: int
) -> None:
    source = TextFile(write(tmp_path / f"g{suffix}", LINES), block_bytes=block_bytes)
    parts = [list(source.blocks(a_rank(rank, size), start=start)) for rank in range(size)]
    assert b"".join(block.text for part in parts for block in part) == LINES[start:]
    assert all(LINES[block.offset :].startswith(block.text) for part in parts for block in part)


def test_plain_shares_are_even(tmp_path: Path) -> None:
    source = TextFile(write(tmp_path / "g.txt", LINES))
    shares = [sum(len(b.text) for b in source.blocks(a_rank(r, 4))) for r in range(4)]
    assert max(shares) - min(shares) <= 2 * len(b"499 249001\n")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_block_is_seen_and_owned_once(tmp_path: Path, suffix: str) -> None:
    source = TextFile(write(tmp_path / f"g{suffix}", LINES), block_bytes=50)
    seen = [list(source.blocks(a_rank(rank, 3), every=True)) for rank in range(3)]
    assert all(b"".join(block.text for block in blocks) == LINES for blocks in seen)
    owners = list(zip(*([block.is_own for block in blocks] for blocks in seen), strict=True))
    assert all(sum(flags) == 1 for flags in owners)
    order = [flags.index(True) for flags in owners]
    assert order == sorted(order)
    if not suffix:
        assert set(order) == {0, 1, 2}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_last_line_without_an_end_gets_one(tmp_path: Path, suffix: str) -> None:
    source = TextFile(write(tmp_path / f"g{suffix}", b"1 2\n3 4"), block_bytes=4)
    assert b"".join(block.text for block in source.blocks(Alone())) == b"1 2\n3 4\n"
    assert [line for _, line in source.lines()] == [b"1 2", b"3 4"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_lines_and_line_numbers(tmp_path: Path, suffix: str) -> None:
    text = b"one\r\ntwo\n\nfour\n"
    source = TextFile(write(tmp_path / f"g{suffix}", text), block_bytes=3)
    lines = list(source.lines())
    assert lines == [(0, b"one"), (5, b"two"), (9, b""), (10, b"four")]
    assert [source.line_number(offset) for offset, _ in lines] == [1, 2, 3, 4]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    source = TextFile(write(tmp_path / "g.txt", b"\xef\xbb\xbf1 2\n3 4\n"))
    assert list(source.lines()) == [(3, b"1 2"), (7, b"3 4")]


def test_header_skips_comments_and_tells_where_to_go_on(tmp_path: Path) -> None:
    source = TextFile(write(tmp_path / "g", b"%a\n\n %b\n3 4\nrest\n"))
    assert source.header(b"%") == (4, b"3 4", 12)
    assert source.header(b"%", first=5) == (5, b"rest", None)
    assert source.header(b"%", first=6) is None


def test_compression_goes_by_content_where_no_suffix_tells(tmp_path: Path) -> None:
    for suffix, compress in COMPRESSORS.items():
        path = tmp_path / f"graph_{suffix[1:]}"
        path.write_bytes(compress(b"1 2\n"))
        assert [line for _, line in TextFile(path).lines()] == [b"1 2"]


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_suffix_that_lies(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(b"1 2\n")
    with pytest.raises(GraphError, match=rf"g\.txt\{suffix}: the name ends in \{suffix}, but .*Rename"):
        TextFile(path)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_truncated_file(tmp_path: Path, suffix: str, share: float) -> None:
    lines = b"".join(b"%d %d\n" % (i, i * 7919 % 104729) for i in range(20_000))
    whole = COMPRESSORS[suffix](lines)
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(GraphError, match=r"g\.txt.*(too early|damaged).*fetch it again"):
        list(TextFile(path).blocks(Alone()))


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_damaged_file(tmp_path: Path, suffix: str) -> None:
    data = bytearray(COMPRESSORS[suffix](LINES * 20))
    for place in range(len(data) // 2, len(data) // 2 + 40):
        data[place] ^= 0xA5
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(bytes(data))
    with pytest.raises(GraphError, match=r"g\.txt.*(too early|damaged)"):
        list(TextFile(path).blocks(Alone()))


def test_binary_junk(tmp_path: Path) -> None:
    path = write(tmp_path / "g.txt", b"1 2\n3 4\n" + bytes(range(200)))
    with pytest.raises(GraphError, match=r"g\.txt:3: the file holds zero bytes, so it is no text.*format="):
        list(TextFile(path, block_bytes=4).blocks(Alone()))
    with pytest.raises(GraphError, match="zero bytes"):
        list(TextFile(path).lines())


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "web-NotreDame.txt", "1 2\n")
    with pytest.raises(
        GraphError, match=r"web-NotreDam\.txt: no such file; the nearest name .*'web-NotreDame\.txt'"
    ):
        TextFile(tmp_path / "web-NotreDam.txt")
    with pytest.raises(GraphError, match="no similar name"):
        TextFile(tmp_path / "zzz")
    with pytest.raises(GraphError, match="no directory"):
        TextFile(tmp_path / "nowhere" / "g.txt")


def test_a_directory_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="is a directory"):
        TextFile(tmp_path)
    with pytest.raises(GraphError, match="is empty"):
        TextFile(write(tmp_path / "g.txt", b""))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "g.txt", "1 2\n")

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(GraphError, match=r"g\.txt: cannot be read: Permission denied"):
        TextFile(path)


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(GraphError, match=r"reading needs pyarrow.*pip install 'sigps\[io\]'"):
        import_optional("pyarrow", "reading")


def test_blocks_of_long_lines(tmp_path: Path) -> None:
    text = b"x" * 1000 + b"\n" + b"y" * 10 + b"\n"
    blocks = TextFile(write(tmp_path / "g", text), block_bytes=16).blocks(Alone())
    assert len(next(blocks).text) >= 1001


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("block_bytes", [3, 64, 1 << 20])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_kind_of_line_end_ends_a_line(tmp_path: Path, suffix: str, block_bytes: int, size: int) -> None:
    ends = [b"\n", b"\r", b"\r\n"]
    draw = random.Random(2)
    pieces = [b"%d%s" % (i, draw.choice(ends)) for i in range(200)]
    plain = b"".join(b"%d\n" % i for i in range(200))
    source = TextFile(write(tmp_path / f"g{suffix}", b"".join(pieces)), block_bytes=block_bytes)
    blocks = [block for rank in range(size) for block in source.blocks(a_rank(rank, size))]
    assert b"".join(block.text for block in blocks) == plain
    assert [line for _, line in source.lines()] == plain.split()
    numbers = [source.line_number(block.offset) for block in blocks]
    assert numbers == [int(block.text.split()[0]) + 1 for block in blocks]


def test_carriage_returns_alone_are_read_in_blocks(tmp_path: Path) -> None:
    source = TextFile(write(tmp_path / "g", LINES.replace(b"\n", b"\r")), block_bytes=100)
    texts = [block.text for block in source.blocks(Alone())]
    assert b"".join(texts) == LINES
    assert max(map(len, texts)) < 300


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_byte_order_mark_is_in_no_block(tmp_path: Path, suffix: str) -> None:
    source = TextFile(write(tmp_path / f"g.txt{suffix}", b"\xef\xbb\xbf1 2\n3 4\n"))
    for size in (1, 2):
        texts = [b.text for rank in range(size) for b in source.blocks(a_rank(rank, size))]
        assert b"".join(texts) == b"1 2\n3 4\n"
    assert source.line_number(3) == 1


def test_a_line_that_never_ends_is_refused_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand bytes unfold into a line of a hundred million; the limit is one million here."""
    monkeypatch.setattr("sigps.graph.formats.blocks._MAX_LINE_BYTES", 1 << 20)
    path = write(tmp_path / "g.txt.gz", b"1 2\n" + b"7" * 10**8)
    tracemalloc.start()
    for read in (lambda: list(TextFile(path).blocks(Alone())), lambda: load(path)):
        with pytest.raises(GraphError, match=r"g\.txt\.gz:2: the line is longer than 1 MiB"):
            read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
