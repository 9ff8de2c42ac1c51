"""How large a graph is, without reading it: exact where a file or formula states it, else an estimate."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from graph_files import COMPRESSORS, write

from sigps.apps import SCC, KCore, PageRank
from sigps.cli.plan.size import measure
from sigps.costs.sizes import Size, turned_size
from sigps.errors import GraphError
from sigps.job.config import load_job


def size_of(folder: Path, **graph: Any) -> Size:
    path = folder / "job.yaml"
    path.write_text("program: a:B\n")
    return measure(load_job(path, [f"graph.{key}={value}" for key, value in graph.items()]))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("g.graph", "% comment\n7 11\n2 3\n", (7, 22, False)),
        ("g.graph", "7 11 011\n2 3\n", (7, 22, False)),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n% c\n5 4 9\n1 1 2\n", (5, 9, True)),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n5 5 9\n1 1\n", (5, 18, False)),
        ("g.gr", "c comment\np sp 5 9\na 1 2 3\n", (5, 9, True)),
        ("g.gr", "p tw 5 9\n1 2\n", (5, 18, False)),
        ("g.txt", "# Directed graph\n# Nodes: 5 Edges: 9\n# From To\n0\t1\n", (5, 9, True)),
    ],
)
def test_files_that_state_their_counts(
    tmp_path: Path, name: str, text: str, expected: tuple[int, int, bool]
) -> None:
    (tmp_path / name).write_text(text)
    size = size_of(tmp_path, path=tmp_path / name)
    assert (size.num_vertices, size.num_edges, size.directed) == expected
    assert size.basis == "the file's header"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress, zstandard.compress])
def test_other_files_are_estimated_and_say_so(tmp_path: Path, compress: Any) -> None:
    suffix = {bytes: "", gzip.compress: ".gz", lzma.compress: ".xz", bz2.compress: ".bz2"}.get(
        compress, ".zst"
    )
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(compress(b"# a comment\n" + b"10 20\n" * 80_000))
    size = size_of(tmp_path, path=path)
    assert size.num_edges == pytest.approx(80_000, rel=0.01)
    assert "an estimate by the first" in size.basis
    assert "vertices are guessed" in size.basis


def test_direction_and_columns_of_the_job_count(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("# Nodes: 5 Edges: 9\n1 2 3 4\n")
    size = size_of(tmp_path, path=path, directed=False, weights=2, columns="{time: 3}")
    assert (size.num_edges, size.directed, size.column_bytes) == (18, False, 16)


def test_adjacency_lists_have_several_edges_a_row(tmp_path: Path) -> None:
    path = tmp_path / "g.adj"
    path.write_text("1 2 3 4\n" * 100)
    assert size_of(tmp_path, path=path, format="adjacency").num_edges == 300


def test_parquet_states_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": [1, 2, 3], "target": [2, 3, 4]}), path)
    assert size_of(tmp_path, path=path).num_edges == 3
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(GraphError, match="cannot be read as Parquet"):
        size_of(tmp_path, path=path)


def test_generators_have_formulas(tmp_path: Path) -> None:
    size = size_of(tmp_path, generator="{grid: {rows: 3, columns: 4, weights: random}}")
    assert size == Size(12, 2 * (3 * 3 + 2 * 4), False, 4, "the generator's formula")
    size = size_of(tmp_path, generator="{rmat: {scale: 5, directed: true}}")
    assert (size.num_vertices, size.num_edges, size.directed) == (32, 512, True)
    assert "before duplicates" in size.basis


@pytest.mark.parametrize("packed", [False, True])
def test_stores_have_headers(tmp_path: Path, packed: bool) -> None:
    from sigps.graph import Graph

    graph = Graph.from_edges([1, 2], [2, 3], weights=[1.0, 2.0])
    graph = graph.with_vertex_columns({"at": [[1.0, 2.0]] * 3, "seed": [True] * 3})
    graph.save(tmp_path / "g.sigps", packed=packed)
    assert size_of(tmp_path, path=tmp_path / "g.sigps") == Size(3, 2, True, 8, "the store's header", 17)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "g.txt.gz").write_bytes(b"no gzip data")
    with pytest.raises(GraphError, match="content is not gz data"):
        size_of(tmp_path, path=tmp_path / "g.txt.gz")
    with pytest.raises(GraphError, match=r"absent\.txt: no such file"):
        size_of(tmp_path, path=tmp_path / "absent.txt")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_file_that_unfolds_into_much_is_estimated_by_little(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"g.txt{suffix}"
    path.write_bytes(COMPRESSORS[suffix]((b"12" + b" " * 4091 + b"34\n") * (1 << 14)))  # 64 MiB
    assert path.stat().st_size < 1 << 17
    tracemalloc.start()
    try:
        size = size_of(tmp_path, path=path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size.num_edges > 0
    assert peak < 40 << 20


def test_a_compressed_file_is_estimated_by_its_ratio(tmp_path: Path) -> None:
    draw = random.Random(3)
    path = write(
        tmp_path / "g.txt.gz",
        "".join(f"{draw.randrange(10**6)} {draw.randrange(10**6)}\n" for _ in range(200_000)),
    )
    assert size_of(tmp_path, path=path).num_edges == pytest.approx(200_000, rel=0.1)


def test_a_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("# nothing\n")
    assert size_of(tmp_path, path=tmp_path / "g.txt").num_edges == 0


SYMMETRIC = Size(1000, 8000, False, 0, "")
DIRECTED = Size(1000, 8000, True, 4, "")


def test_edges_count_in_the_directions_in_which_a_program_takes_them() -> None:
    """The graph has a column of 4 bytes; two truth values give the direction."""
    assert turned_size(DIRECTED, PageRank()) == DIRECTED
    assert turned_size(DIRECTED, KCore()) == Size(1000, 16000, False, 4, "")
    assert turned_size(DIRECTED, SCC()) == Size(1000, 16000, True, 6, "")
    assert turned_size(SYMMETRIC, KCore()) == SYMMETRIC
    assert turned_size(SYMMETRIC, SCC()) == Size(1000, 8000, False, 2, "")
