"""Texts as bytes and the tables that number them: the dict is judged by hand, the compiled one by the dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigps.graph.building.texts as texts_module
from sigps.graph import build_graph
from sigps.graph.building import text_kernel
from sigps.graph.building.edges import EdgeChunk, TextChunk
from sigps.graph.building.texts import HashedTexts, ListedTexts, Texts, TextTable
from sigps.group import Alone, Group

Ranks = Callable[..., list[Any]]
TABLES = [ListedTexts, HashedTexts]
WORDS = st.lists(st.text(st.sampled_from("abé漢\U0001f600"), max_size=4), max_size=30)


def texts(*strings: str) -> Texts:
    return Texts.of_bytes([string.encode() for string in strings])


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()])
def test_texts_of_a_slice_of_an_arrow_array(kind: pyarrow.DataType) -> None:
    array = pyarrow.array(["left out", "b", "äé", "", "漢字😀", "also"], type=kind).slice(1, 4)
    strings = np.asarray(Texts.of_arrow(array))
    assert (strings.dtype, strings.tolist()) == (np.dtype("<U3"), ["b", "äé", "", "漢字😀"])


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()])
def test_no_texts(kind: pyarrow.DataType) -> None:
    nothing = Texts.of_arrow(pyarrow.array([], type=kind))
    assert (nothing.size, np.asarray(nothing).dtype) == (0, np.dtype("<U1"))
    assert texts().as_bytes() == []


def test_an_array_of_str_is_as_wide_as_the_longest_of_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "_BLOCK", 2)
    strings = np.asarray(texts("a", "bb", "cccc", "d", "éé"))
    assert (strings.dtype, strings.tolist()) == (np.dtype("<U4"), ["a", "bb", "cccc", "d", "éé"])


@pytest.mark.parametrize("table", TABLES)
def test_texts_are_numbered_as_they_come(table: type[ListedTexts | HashedTexts]) -> None:
    numbered = table()
    assert numbered.codes(texts("x", "aa", "x", "", "a")).tolist() == [0, 1, 0, 2, 3]
    assert numbered.codes(texts()).tolist() == []
    assert numbered.codes(texts("ab", "", "aa", "x", "ab")).tolist() == [4, 2, 1, 0, 4]
    assert numbered.distinct().as_bytes() == [b"x", b"aa", b"", b"a", b"ab"]


@given(st.lists(WORDS, max_size=6))
def test_the_compiled_table_numbers_as_the_dict_does(parts: list[list[str]]) -> None:
    plain, fast = ListedTexts(), HashedTexts()
    for part in parts:
        assert fast.codes(texts(*part)).tolist() == plain.codes(texts(*part)).tolist()
    assert fast.distinct().as_bytes() == plain.distinct().as_bytes()


@pytest.mark.parametrize("table", TABLES)
def test_more_texts_than_the_table_began_with(table: type[ListedTexts | HashedTexts]) -> None:
    numbers = np.random.default_rng(7).integers(0, 3000, (40, 500)).tolist()
    first_places: dict[int, int] = {}
    numbered = table()
    for part in numbers:
        expected = [first_places.setdefault(number, len(first_places)) for number in part]
        assert numbered.codes(texts(*(f"id {number}" for number in part))).tolist() == expected
    assert numbered.distinct().as_bytes() == [b"id %d" % number for number in first_places]


def test_texts_of_one_hash_are_told_apart() -> None:
    given_texts = texts("ab", "ba", "a", "ab", "b", "ba", "")
    data, ends = np.zeros(8, np.uint8), np.zeros(8, np.int64)
    slots, codes = np.zeros(16, np.uint64), np.zeros(7, np.uint32)
    hashes = np.full(7, 15, np.uint64)  # the last slot: the search goes on at the first
    known = (data, ends, slots, 0, codes)
    assert text_kernel.look_up(given_texts.data, given_texts.offsets, hashes, *known) == 5
    assert codes.tolist() == [0, 1, 2, 0, 3, 1, 4]
    assert ends[:6].tolist() == [0, 2, 4, 5, 6, 6]
    assert data[:6].tobytes() == b"abbaab"


def test_the_hash_of_texts() -> None:
    hashes = np.zeros(2, np.uint64)
    pair = texts("a", "foobar")
    text_kernel.hash_texts(pair.data, pair.offsets, hashes)
    # FNV-1a as published: 64 bits of "a" and of "foobar"
    published = [0xAF63DC4C8601EC8C, 0x85944171F73967E8]
    spread = [(value * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32 for value in published]
    assert hashes.tolist() == spread


def test_numbers_stay_when_the_compiled_table_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "_MIN_HASHED_TEXTS", 6)
    table = TextTable()
    assert table.codes(texts("c", "b", "c", "a")).tolist() == [0, 1, 0, 2]
    assert isinstance(table._table, ListedTexts)
    assert table.codes(texts("a", "d", "c")).tolist() == [2, 3, 0]
    assert isinstance(table._table, HashedTexts)
    assert table.distinct().as_bytes() == [b"c", b"b", b"a", b"d"]


EDGES = [
    ("x", "é", 1),
    ("é", "x", 2),
    ("aa", "x", 3),
    ("x", "x", 4),
    ("b", "zzz", 5),
    ("x", "é", 6),
    ("ä", "b", 7),
]


def chunks_of(edges: list[tuple[str, str, int]], mixed: bool) -> list[EdgeChunk | TextChunk]:
    """Return the edges as chunks of texts; if `mixed`, every second one as a chunk of str."""
    made: list[EdgeChunk | TextChunk] = []
    for place, (source, target, weight) in enumerate(edges):
        columns = {"weight": np.array([weight])}
        if mixed and place % 2:
            made.append(EdgeChunk(np.array([source]), np.array([target]), columns))
        else:
            made.append(TextChunk(texts(source), texts(target), columns))
    return made


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("hashing_pays", [0, 1 << 20])
def test_a_graph_of_texts(
    run_ranks: Ranks, monkeypatch: pytest.MonkeyPatch, size: int, mixed: bool, hashing_pays: int
) -> None:
    monkeypatch.setattr(texts_module, "_MIN_HASHED_TEXTS", hashing_pays)

    def build(group: Group) -> tuple[list[str], list[tuple[Any, ...]]]:
        own = EDGES[len(EDGES) * group.rank // size : len(EDGES) * (group.rank + 1) // size]
        named = np.array(["lonely", "x"]) if group.rank == 0 else None
        graph = build_graph(chunks_of(own, mixed), directed=True, group=group, vertices=named)
        ids = graph.ids.to_oids(np.arange(graph.num_rows) + graph.first_row).tolist()
        rows = np.repeat(np.arange(graph.num_rows) + graph.first_row, graph.out_degrees())
        edges = zip(rows.tolist(), graph.targets.tolist(), graph.columns["weight"].tolist(), strict=True)
        return ids, list(edges)

    parts = run_ranks(size, build)
    # by code points: aa < b < lonely < x < zzz < ä < é
    assert [oid for ids, _ in parts for oid in ids] == ["aa", "b", "lonely", "x", "zzz", "ä", "é"]
    assert [edge for _, edges in parts for edge in edges] == [
        (0, 3, 3),
        (1, 4, 5),
        (3, 3, 4),
        (3, 6, 1),
        (3, 6, 6),
        (5, 1, 7),
        (6, 3, 2),
    ]


def test_empty_chunks_of_texts_leave_their_columns() -> None:
    nothing = TextChunk(texts(), texts(), {"weight": np.empty(0, np.int64)})
    assert list(build_graph([nothing], directed=True, group=Alone()).columns) == ["weight"]
    edge = TextChunk(texts("b"), texts("a"), {"weight": np.array([3])})
    graph = build_graph([nothing, edge, nothing], directed=True, group=Alone())
    assert (graph.num_vertices, graph.targets.tolist(), graph.columns["weight"].tolist()) == (2, [0], [3])
