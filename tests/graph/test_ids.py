"""Ids: the map between the user's ids and 0..n-1, on one rank and on several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.errors import GraphError
from sigps.graph import Graph
from sigps.graph.ids import Ids
from sigps.graph.user_arrays import as_ids
from sigps.group import split_by_rank

INT64 = st.integers(-(2**63), 2**63 - 1)


class TestIds:
    def test_identity_maps_each_id_to_itself(self):
        ids = Ids.identity(4)
        assert ids.is_identity
        assert ids.kind == "identity"
        assert ids.to_gids([0, 3, 4, -1]).tolist() == [0, 3, -1, -1]
        assert ids.to_oids([2, 0]).tolist() == [2, 0]
        assert ids.nbytes == 0

    def test_range_begins_at_its_base(self):
        ids = Ids.range(10, 3)
        assert not ids.is_identity
        assert ids.kind == "range"
        assert ids.to_gids([9, 10, 12, 13]).tolist() == [-1, 0, 2, -1]
        assert ids.to_oids([0, 2]).tolist() == [10, 12]

    def test_range_at_the_end_of_int64(self):
        ids = Ids.range(2**63 - 2, 2)
        assert ids.to_gids([2**63 - 1, -(2**63), 0]).tolist() == [1, -1, -1]
        assert ids.to_oids([1]).tolist() == [2**63 - 1]

    def test_table_finds_ids_by_value(self):
        ids = Ids.of(np.array([-5, 7, 10**12]))
        assert ids.kind == "table"
        assert ids.dtype == np.int64
        assert ids.to_gids([10**12, -5, 8, 10**13]).tolist() == [2, 0, -1, -1]
        assert ids.to_oids([1, 1, 0]).tolist() == [7, 7, -5]

    def test_strings_of_other_widths_are_found_or_not(self):
        ids = Ids.of(np.array(["a", "bc", "é"]))
        assert ids.kind == "strings"
        assert ids.to_gids(["é", "a", "b", "bcd"]).tolist() == [2, 0, -1, -1]
        assert ids.to_oids([1]).tolist() == ["bc"]

    def test_an_id_of_the_other_kind_is_unknown(self):
        assert Ids.of(np.array(["1", "2"])).to_gids([1]).tolist() == [-1]
        assert Ids.identity(3).to_gids(["1"]).tolist() == [-1]

    def test_one_id_needs_no_list(self):
        assert Ids.identity(3).to_gids(2).tolist() == [2]
        assert Ids.of(np.array(["x"])).to_gids("x").tolist() == [0]

    def test_small_integer_types_do_not_overflow(self):
        assert Ids.range(1000, 5).to_gids(np.array([-128, 100], dtype=np.int8)).tolist() == [-1, -1]

    def test_a_gid_outside_is_an_error(self):
        with pytest.raises(GraphError, match=r"gid is outside 0\.\.2"):
            Ids.identity(3).to_oids([3])

    def test_no_vertices(self):
        ids = Ids.of(np.empty(0, dtype=np.int64))
        assert ids.to_gids([1, 2]).tolist() == [-1, -1]
        assert ids.to_oids([]).size == 0

    @given(st.lists(INT64, unique=True), st.lists(INT64))
    @settings(deadline=None)
    def test_gids_agree_with_a_dict(self, table, asked):
        table.sort()
        known = {oid: gid for gid, oid in enumerate(table)}
        ids = Ids.of(np.array(table, dtype=np.int64))
        found = ids.to_gids(np.array([*asked, *table], dtype=np.int64))
        assert found.tolist() == [known.get(oid, -1) for oid in [*asked, *table]]


class TestSpreadIds:
    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    @pytest.mark.parametrize("words", [False, True])
    @pytest.mark.parametrize("bounds", [[0, 0, 5, 5, 9], [0, 3, 6, 7, 9], [0, 9, 9, 9, 9]])
    def test_every_rank_finds_every_id(self, run_ranks, size, words, bounds):
        table = np.array([-9, -3, 0, 2, 4, 6, 8, 100, 2**40])
        if words:
            table = np.sort(table.astype(str))
        bounds = np.array([*bounds[:size], 9])

        def ask_all(group):
            ids = Ids.of(
                table[bounds[group.rank] : bounds[group.rank + 1]].copy(), group=group, row_bounds=bounds
            )
            asked = np.roll(table, group.rank)[group.rank :]
            unknown = ["zz", "1000000"] if words else [1, 2**41]
            return asked, ids.to_gids(asked), ids.to_gids(unknown), ids.to_oids(ids.to_gids(asked))

        for asked, gids, unknown, oids in run_ranks(size, ask_all):
            assert gids.tolist() == [table.tolist().index(oid) for oid in asked]
            assert unknown.tolist() == [-1, -1]
            assert oids.tolist() == asked.tolist()

    def test_a_rank_that_asks_for_nothing_or_the_wrong_kind_holds_nobody_up(self, run_ranks):
        table = np.array(["a", "b", "c"])

        def ask_some(group):
            ids = Ids.of(table[group.rank : group.rank + 1], group=group, row_bounds=np.arange(4))
            return ids.to_gids([["b", "longer"], [5], []][group.rank]).tolist()

        assert run_ranks(3, ask_some) == [[1, -1], [-1], []]

    def test_no_rank_has_an_id(self, run_ranks):
        def ask_one(group):
            ids = Ids.of(np.empty(0, dtype=np.int64), group=group, row_bounds=np.zeros(3, dtype=np.int64))
            return ids.to_gids([7]).tolist()

        assert run_ranks(2, ask_one) == [[-1], [-1]]


class TestAsIds:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([1, 2], [1, 2]),
            ([1.0, -2.0], [1, -2]),
            (np.array([3], dtype=np.uint64), [3]),
            (np.array([3], dtype=np.int8), [3]),
            (["a", "b"], ["a", "b"]),
            (np.array(["a", "é"], dtype=object), ["a", "é"]),
            (np.array([1, np.int32(2)], dtype=object), [1, 2]),
            (np.array([b"a", "é".encode()]), ["a", "é"]),
            ([], []),
        ],
    )
    def test_takes_whole_numbers_and_strings(self, values, expected):
        assert as_ids(values, "sources").tolist() == expected

    @pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy below 2 has no StringDType")
    def test_takes_variable_width_strings(self):
        assert as_ids(np.array(["a", "bcd"], dtype=np.dtypes.StringDType()), "ids").tolist() == ["a", "bcd"]

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ([1.5], r"sources\[0\] is 1\.5: an id given as float must be whole"),
            ([0.0, float("nan")], r"sources\[1\] is nan"),
            ([float("inf")], r"sources\[0\] is inf"),
            ([2.0**60], r"within 2\*\*53"),
            ([1, "a"], "all whole numbers or all strings, not int, str"),
            ([None, 1], "not NoneType, int|not int, NoneType"),
            ([True, False], "must be whole numbers or strings, not bool"),
            ([2**63], "above the largest id"),
            ([2**70], "outside int64"),
            ([-(2**70)], "outside int64"),
            ([1 + 2j], "not complex128"),
            (np.array(["2020-01-01"], dtype="datetime64[D]"), "not datetime64"),
        ],
    )
    def test_refuses_all_else(self, values, problem):
        with pytest.raises(GraphError, match=problem):
            as_ids(values, "sources")


def test_split_by_rank_keeps_the_given_order():
    owners = np.array([2, 0, 2, 0, 0])
    order, parts = split_by_rank(owners, 4)
    assert [order[part].tolist() for part in parts] == [[1, 3, 4], [], [0, 2], []]


@pytest.mark.parametrize("ids", [["a", "a\0"], np.array(["a", "a\0"], dtype=object)])
def test_ids_that_differ_by_a_trailing_zero_are_refused(ids: Any) -> None:
    with pytest.raises(GraphError, match=r"the id 'a\\x00' ends with a zero character"):
        as_ids(ids, "sources")
    with pytest.raises(GraphError, match=r"ends with a zero character"):
        Graph.from_edges(["b", "b"], list(ids))
    with pytest.raises(GraphError, match=r"ends with a zero character"):
        Graph.from_arrow(pyarrow.table({"source": ["b", "b"], "target": list(ids)}))
    assert Graph.from_edges(["a\0b"], ["a"]).num_vertices == 2
