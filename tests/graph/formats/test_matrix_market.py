from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from graph_files import arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]
HEAD = "%%MatrixMarket matrix coordinate"
ARRAY = "%%MatrixMarket matrix array"


@pytest.mark.parametrize(
    ("field", "entries", "expected"),
    [
        ("pattern", "1 3\n3 1\n2 2\n", [(1, 3), (2, 2), (3, 1)]),
        ("real", "1 3 .5\n3 1 -2e1\n2 2 7\n", [(1, 3, 0.5), (2, 2, 7.0), (3, 1, -20.0)]),
        ("double", "1 3 .5\n3 1 -2e1\n2 2 7\n", [(1, 3, 0.5), (2, 2, 7.0), (3, 1, -20.0)]),
        ("integer", "1 3 5\n3 1 -2\n2 2 7\n", [(1, 3, 5), (2, 2, 7), (3, 1, -2)]),
    ],
)
def test_general_matrices(tmp_path: Path, field: str, entries: str, expected: list[Any]) -> None:
    path = write(tmp_path / "g.mtx", f"{HEAD} {field} general\n% note\n\n4 4 3\n{entries}")
    graph = load(path)
    assert arcs(graph) == expected
    assert vertices(graph) == [1, 2, 3, 4]
    assert graph.directed
    assert (graph.report.format, graph.report.rows_skipped, graph.report.isolated) == ("mtx", 4, 1)
    assert [type(value) for value in arcs(graph)[0]] == [type(value) for value in expected[0]]


def test_a_symmetric_matrix_is_undirected(tmp_path: Path) -> None:
    path = write(tmp_path / "g.mtx.gz", f"{HEAD} Integer Symmetric\n3 3 2\n2 1 5\n3 3 6\n")
    graph = load(path)
    assert not graph.directed
    assert arcs(graph) == [(1, 2, 5), (2, 1, 5), (3, 3, 6)]
    assert graph.report.edges_given == 2


def test_a_symmetric_matrix_can_be_read_as_directed(tmp_path: Path) -> None:
    path = write(tmp_path / "g.mtx", f"{HEAD} integer symmetric\n3 3 2\n2 1 5\n3 3 6\n")
    graph = load(path, directed=True)
    assert graph.directed
    assert arcs(graph) == [(1, 2, 5), (2, 1, 5), (3, 3, 6)]


def test_weights_can_be_left_or_demanded(tmp_path: Path) -> None:
    real = write(tmp_path / "real.mtx", f"{HEAD} real general\n2 2 1\n1 2 .5\n")
    assert arcs(load(real, weights=False)) == [(1, 2)]
    assert arcs(load(real, weights=True)) == [(1, 2, 0.5)]
    pattern = write(tmp_path / "pattern.mtx", f"{HEAD} pattern general\n2 2 1\n1 2\n")
    with pytest.raises(GraphError, match=r"pattern\.mtx: a pattern matrix has no weights"):
        load(pattern, weights=True)
    with pytest.raises(GraphError, match=r"one place for weights: weights=2 must be"):
        load(real, weights=2)


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_matrix_without_entries(tmp_path: Path, ending: str) -> None:
    graph = load(write(tmp_path / "g.mtx", f"{HEAD} real general\n3 3 0{ending}"))
    assert (vertices(graph), arcs(graph)) == ([1, 2, 3], [])


def test_the_banner_decides_whatever_the_suffix(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.txt", f"{HEAD} pattern general\n2 2 1\n1 2\n"))
    assert (graph.report.format, arcs(graph)) == ("mtx", [(1, 2)])


@pytest.mark.parametrize("form", ["coordinate", "array"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer"])
def test_every_form_and_symmetry_is_what_scipy_reads(
    tmp_path: Path, run_ranks: Ranks, field: str, symmetry: str, form: str
) -> None:
    dense = np.random.default_rng(7).integers(-2, 3, (5, 5)) * (1 if field == "integer" else 0.5)
    dense = {"general": dense, "symmetric": dense + dense.T, "skew-symmetric": dense - dense.T}[symmetry]
    matrix: Any = dense if form == "array" else scipy.sparse.coo_array(dense)
    path = tmp_path / "g.mtx"
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry)
    assert f"matrix {form} {field} {symmetry}" in path.read_text()
    rows, columns = np.nonzero(dense)
    expected = sorted(zip(rows + 1, columns + 1, dense[rows, columns], strict=True))
    assert load(path).directed == (symmetry != "symmetric")
    for size in (1, 3):
        assert load_in_ranks(run_ranks, size, path, directed=True)[:2] == [expected, [1, 2, 3, 4, 5]]
    if symmetry == "skew-symmetric":
        with pytest.raises(GraphError, match=r"opposite weights .* cannot be read with directed=False"):
            load(path, directed=False)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_what_scipy_writes_and_reads(tmp_path: Path, field: str, symmetry: str) -> None:
    draw = np.random.default_rng(5)
    dense = draw.integers(1, 9, (30, 30)) * (draw.random((30, 30)) < 0.2)
    if symmetry == "symmetric":
        dense = np.triu(dense) + np.triu(dense, 1).T
    matrix = scipy.sparse.coo_array(dense / 4 if field == "real" else dense)
    buffer = BytesIO()
    scipy.io.mmwrite(buffer, matrix, comment="made by a test", field=field, symmetry=symmetry)
    path = write(tmp_path / "g.mtx", buffer.getvalue())
    referee = scipy.sparse.coo_array(scipy.io.mmread(path))
    triples = zip(*(x.tolist() for x in (referee.row + 1, referee.col + 1, referee.data)), strict=True)
    expected = sorted(triple[: 2 if field == "pattern" else 3] for triple in triples)
    assert arcs(load(path)) == expected


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("suffix", ["", ".xz"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_ranks_together_load_what_one_loads(
    tmp_path: Path, run_ranks: Ranks, size: int, suffix: str, symmetry: str
) -> None:
    draw = np.random.default_rng(6).integers(1, 51, (400, 3))
    entries = "".join(f"{i} {j} {w}\n" for i, j, w in draw.tolist())
    path = write(tmp_path / f"g.mtx{suffix}", f"{HEAD} integer {symmetry}\n60 60 400\n{entries}")
    one = load(path)
    assert load_in_ranks(run_ranks, size, path) == [arcs(one), vertices(one), 2]
    assert vertices(one) == list(range(1, 61))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("1 2\n", r"g\.mtx:1: b'1 2' is no Matrix Market banner.*format="),
        ("%%MatrixMarket vector array real general\n2 1\n1\n0\n", r"vector in array form is no graph"),
        (f"{ARRAY} pattern general\n1 1\n1\n", r"array of the field pattern has no values"),
        (f"{ARRAY} real general\n2 2\n1\n0\n0\n", r"promises 4 values, but the file has 3"),
        (f"{ARRAY} real symmetric\n2 2\n1\n0\n0\n1\n", r"promises 3 values, but the file has 4"),
        (f"{ARRAY} real general\n2 2\n1 0\n0 1\n", r"g\.mtx:3: .*An array has one value a line"),
        (f"{HEAD} complex general\n2 2 1\n1 2 1 1\n", r"the field 'complex' is no edge weight"),
        (f"{HEAD} complex hermitian\n2 2 1\n2 1 1 1\n", r"the field 'complex' is no edge weight"),
        (f"{HEAD} real hermitian\n2 2 1\n2 1 1\n", r"a hermitian matrix is no undirected graph"),
        (f"{HEAD} pattern skew-symmetric\n2 2 1\n2 1\n", r"of the field pattern has no values"),
        (f"{HEAD} real skew-symmetric\n2 2 1\n2 2 1\n", r"has an entry at \(2, 2\), which must be 0"),
        (f"{HEAD} real general\n{10**12} {10**12} 1\n1 2 1\n", r"g\.mtx:2: 1,000,000,000,000 vertices need"),
        (
            f"{HEAD} real general\n{10**20} {10**20} 1\n1 2 1\n",
            r"g\.mtx:2: the size line .* counts below 2\*\*63",
        ),
        (f"{HEAD} real general\n2 2 {10**12}\n1 2 1\n", r"promises 1000000000000 entries, but"),
        (f"{HEAD} real general\n% end\n", r"ends before its size line"),
        (f"{HEAD} real general\n2 2\n", r"g\.mtx:2: the size line must be 'rows columns entries'"),
        (
            f"{HEAD} real general\n% a\n2 3 1\n1 3 1\n",
            r"g\.mtx:3: the matrix is 2 x 3, but .* square.*bipartite",
        ),
        (f"{HEAD} real general\n2 2 2\n1 2 1\n", r"promises 2 entries, but the file has 1; it is cut off"),
        (f"{HEAD} real general\n2 2 1\n1 2 1\n2 1 1\n", r"promises 1 entries, but the file has 2; correct"),
        (f"{HEAD} real general\n2 2 1\n1 3 1\n", r"g\.mtx:3: the column 3 is outside 1\.\.2"),
        (f"{HEAD} real general\n2 2 1\n0 1 1\n", r"g\.mtx:3: the row 0 is outside 1\.\.2"),
        (f"{HEAD} real general\n2 2 1\n1 2\n", r"g\.mtx:3: '1 2' has 2 fields.*A real matrix has 3 fields"),
        (
            f"{HEAD} integer general\n2 2 1\n1 2 .5\n",
            r"the value '.5' is not an integer.*real allows fractions",
        ),
        (f"{HEAD} real general\n2 2 1\n1 2 nan\n", r"g\.mtx:3: the value is nan"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.mtx", text))


def test_a_header_that_promises_too_much_is_an_error_on_every_rank(tmp_path: Path, run_ranks: Ranks) -> None:
    path = write(tmp_path / "g.mtx", f"{HEAD} real general\n9 9 5\n1 2 1\n2 3 1\n")

    def problem(group: Any) -> str:
        with pytest.raises(GraphError) as caught:
            load(path, group=group)
        return str(caught.value)

    assert all("promises 5 entries, but the file has 2" in text for text in run_ranks(3, problem))


def test_a_real_graph(data_dir: Path) -> None:
    graph = load(data_dir / "dblp-2010.mtx.xz")
    assert (graph.num_vertices, graph.report.edges_given, graph.directed) == (326186, 807700, False)
    assert (graph.report.isolated, graph.report.base, graph.num_edges) == (25539, 1, 2 * 807700)
