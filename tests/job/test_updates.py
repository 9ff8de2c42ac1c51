"""Batches of updates from files and tables."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigps import ConfigError, Graph, GraphError, Updates, read_updates

pyarrow = pytest.importorskip("pyarrow")


def plain(batch: Updates) -> dict[str, Any]:
    sources, targets, columns = batch.inserts
    found = {"inserts": list(zip(sources.tolist(), targets.tolist(), strict=True))}
    found |= {name: values.tolist() for name, values in columns.items()}
    if batch.deletes is not None:
        found["deletes"] = list(zip(*(part.tolist() for part in batch.deletes), strict=True))
    if batch.times is not None:
        found["times"] = batch.times.tolist()
    return found


ROWS = "op,source,target,weight,time\n+,1,2,0.5,10\n-,3,4,0,11\ninsert,5,6,1.5,12\n"
EXPECTED = [
    {"inserts": [(1, 2)], "weight": [0.5], "times": [10], "deletes": [(3, 4)]},
    {"inserts": [(5, 6)], "weight": [1.5], "times": [12]},
]


class TestFiles:
    @pytest.mark.parametrize("name", ["u.csv", "u.tsv", "u.txt", "u.csv.gz", "u.parquet", "u.arrow"])
    def test_of_every_format(self, tmp_path: Path, name: str) -> None:
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet

        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(ROWS.encode()))
        elif name.endswith(("csv", "tsv", "txt")):
            path.write_text(ROWS.replace(",", "\t") if name == "u.tsv" else ROWS)
        else:
            (tmp_path / "plain.csv").write_text(ROWS)
            table = pyarrow.csv.read_csv(tmp_path / "plain.csv")
            if name == "u.parquet":
                pyarrow.parquet.write_table(table, path)
            else:
                pyarrow.feather.write_feather(table, path, compression="uncompressed")
        assert [plain(batch) for batch in read_updates(path, every=2)] == EXPECTED
        assert [plain(batch) for batch in read_updates(str(path), every=2, skip=1)] == EXPECTED[1:]

    def test_a_batch_ends_with_each_of_several(self, tmp_path: Path) -> None:
        for stage in (1, 2):
            (tmp_path / f"stage_{stage}.tsv").write_text(f"{stage}\t7\t1\n{stage}\t8\t1\n{stage}\t9\t1\n")
        batches = [*read_updates([tmp_path / "stage_1.tsv", tmp_path / "stage_2.tsv"], every=2)]
        assert [plain(batch)["inserts"] for batch in batches] == [
            [(1, 7), (1, 8)],
            [(1, 9)],
            [(2, 7), (2, 8)],
            [(2, 9)],
        ]
        assert [batch.num_rows for batch in batches] == [2, 1, 2, 1]

    def test_without_a_header_they_may_begin_with_the_op(self, tmp_path: Path) -> None:
        (tmp_path / "u.txt").write_text("+ 1 2\n- 3 4\n")
        [batch] = read_updates(tmp_path / "u.txt")
        assert plain(batch) == {"inserts": [(1, 2)], "deletes": [(3, 4)]}

    def test_timestamps_are_seconds(self, tmp_path: Path) -> None:
        (tmp_path / "u.csv").write_text("from,to,when\n1,2,2020-01-01 00:00:00\n1,3,2020-01-02 00:00:01\n")
        [batch] = read_updates(tmp_path / "u.csv", columns={"time": "when"})
        assert np.diff(batch.times).tolist() == [86_401.0]

    @pytest.mark.parametrize(
        ("name", "text", "kind", "message"),
        [
            ("u.csv", "op,source,target\n*,1,2\n", GraphError, r"the op '\*' is not known"),
            ("u.csv", "op,source,end\n+,1,2\n", GraphError, "no column is the target; there are end"),
            ("u.csv", "source,target\n1,\n", GraphError, "the column 'target' has 1 missing values"),
            ("u.csv", "source,target,time\n1,2,noon\n", GraphError, "a time is a number or a timestamp"),
            ("u.csv", "1,2,3,4,5\n", GraphError, "5 columns and no header"),
            ("u.xml", "", ConfigError, "has no known format"),
        ],
    )
    def test_that_are_wrong(
        self, tmp_path: Path, name: str, text: str, kind: type[Exception], message: str
    ) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(kind, match=message):
            [*read_updates(tmp_path / name)]

    def test_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(GraphError, match="there is no file"):
            [*read_updates(tmp_path / "u.csv")]


@pytest.mark.parametrize(
    ("given", "message"), [({"every": 0}, "every=0"), ({"columns": {"kind": "op"}}, "names 'kind'")]
)
def test_options_that_are_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        [*read_updates(pyarrow.table({"source": [1], "target": [2]}), **given)]


rows = st.lists(st.tuples(st.sampled_from("+-"), st.integers(0, 3), st.integers(0, 3)), max_size=20)


@given(rows, st.booleans(), st.integers(1, 9))
def test_a_batch_is_its_rows_one_after_the_other(
    stream: list[tuple[str, int, int]], directed: bool, every: int
) -> None:
    graph = Graph.from_edges([0, 1, 1], [1, 2, 2], [7, 8, 9], directed=directed, vertices=range(4))
    edges = [(0, 1, 7), (1, 2, 8), (1, 2, 9)]
    for weight, (op, s, t) in enumerate(stream):
        if op == "+":
            edges.append((s, t, weight))
        else:
            edges = [e for e in edges if e[:2] != (s, t) and (directed or e[:2] != (t, s))]
    parts = list(zip(*stream, strict=True)) or [(), (), ()]
    types = [pyarrow.string(), pyarrow.int64(), pyarrow.int64()]
    columns = [pyarrow.array(list(part), kind) for part, kind in zip(parts, types, strict=True)]
    table = pyarrow.table(
        [*columns, pyarrow.array(range(len(stream)), pyarrow.int64())], ["op", "src", "dst", "weight"]
    )
    for batch in read_updates(table, every=every, directed=directed):
        graph = graph.apply(batch.inserts, batch.deletes)
    judge = Graph.from_edges(
        *np.array(edges, dtype=np.int64).reshape(-1, 3).T, directed=directed, vertices=range(4)
    )
    assert graph.to_arrow() == judge.to_arrow()
