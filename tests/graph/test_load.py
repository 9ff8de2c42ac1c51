from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_files import arcs, load_in_ranks, vertices, write

import sigps.graph.load as load_module
from sigps.errors import ConfigError, GraphError
from sigps.graph import Graph
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, own_ids
from sigps.graph.formats.store import save
from sigps.graph.formats.table import FORMATS, Format, detect_format
from sigps.graph.load import load
from sigps.group import Alone, Group

Ranks = Callable[..., list[Any]]

TEXTS = {
    "snap": "1 2\n2 3\n",
    "csv": "1,2\n2,3\n",
    "tsv": "1\t2\n2\t3\n",
    "mtx": "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n",
    "metis": "3 2\n2\n1 3\n2\n",
    "dimacs": "p sp 3 2\na 1 2 1\na 2 3 1\n",
    "adjacency": "1 2\n2 3\n",
}


@pytest.mark.parametrize("format", list(TEXTS))
def test_a_given_format_overrides_the_suffix(tmp_path: Path, format: str) -> None:
    path = write(tmp_path / "g.xyz", TEXTS[format])
    graph = (
        load(path, format=format, directed=False, weights=False)
        if format != "adjacency"
        else load(path, format=format)
    )
    expected = [(1, 2), (2, 3)] if format == "adjacency" else [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert (graph.report.format, arcs(graph)) == (format, expected)
    assert (graph.report.source, vertices(graph)) == (str(path), [1, 2, 3])
    assert graph.report.seconds > 0


def test_edges_is_another_name_of_snap(tmp_path: Path) -> None:
    assert load(write(tmp_path / "g.gr", "1 2\n"), format="edges").report.format == "snap"


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    assert arcs(load(str(write(tmp_path / "g.txt", "1 2\n")))) == [(1, 2)]


def test_the_native_store(tmp_path: Path) -> None:
    graph = Graph.from_edges([1, 2], [2, 3], [0.5, 1.5])
    save(graph, tmp_path / "g.sigps")
    assert detect_format(tmp_path / "g.sigps") == "store"
    assert arcs(load(tmp_path / "g.sigps")) == arcs(load(tmp_path / "g.sigps", format="store")) == arcs(graph)
    for options in ({"weights": True}, {"duplicates": "drop"}, {"directed": False}, {"self_loops": "drop"}):
        with pytest.raises(
            ConfigError, match="a native store holds a finished graph, so it takes no options"
        ):
            load(tmp_path / "g.sigps", **options)  # type: ignore[arg-type]


def test_the_native_store_in_ranks(tmp_path: Path, run_ranks: Ranks) -> None:
    graph = Graph.from_edges([1, 2, 3, 3], [2, 3, 1, 2])
    save(graph, tmp_path / "g.sigps")
    assert load_in_ranks(run_ranks, 2, tmp_path / "g.sigps")[:2] == [arcs(graph), vertices(graph)]


def test_unknown_formats_and_options(tmp_path: Path) -> None:
    path = write(tmp_path / "g.mtx", TEXTS["mtx"])
    with pytest.raises(ConfigError, match=r"format='xml' is not known; choose one of auto, snap, .*store"):
        load(path, format="xml")
    with pytest.raises(
        ConfigError, match=r"comment=, delimiter= means nothing for the format 'mtx', .*directed=, weights="
    ):
        load(path, delimiter=",", comment="#")


@pytest.mark.parametrize("format", list(FORMATS))
def test_every_format_takes_only_the_options_that_it_names(tmp_path: Path, format: str) -> None:
    values = {"weights": True, "columns": {}, "source": 0, "target": 1, "delimiter": " ", "comment": "#"}
    values |= {"header": False, "ids": "string"}
    for name, value in values.items():
        if name not in FORMATS[format].options:
            with pytest.raises(ConfigError, match=rf"{name}= means nothing for the format '{format}'"):
                load(write(tmp_path / "g", "1 2\n"), format=format, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("format", [*FORMATS, "store", "auto"])
def test_missing_files_of_every_format(tmp_path: Path, format: str) -> None:
    with pytest.raises(GraphError, match=str(tmp_path)):
        load(tmp_path / "graph.txt", format=format)


@pytest.mark.parametrize("format", [*FORMATS, "auto"])
@pytest.mark.parametrize("content", [b"", b"\0\1\2junk\0\n\0"])
def test_empty_files_and_binary_junk_of_every_format(tmp_path: Path, format: str, content: bytes) -> None:
    for ending in ("txt", "v", "e"):
        write(tmp_path / f"g.{ending}", content)
    with pytest.raises(GraphError, match=r"g\.(txt|v)(: .*\bempty|:1: .*zero bytes|: cannot be read as)"):
        load(tmp_path / ("g.e" if format == "ldbc" else "g.txt"), format=format, directed=True)


def test_directories(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="is a directory without a graph store"):
        load(tmp_path)
    with pytest.raises(GraphError, match="is a directory"):
        load(tmp_path, format="snap")


def test_a_missing_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for format, text in TEXTS.items():
        with pytest.raises(
            GraphError, match=r"g: reading text files needs pyarrow.*pip install 'sigps\[io\]'"
        ):
            load(write(tmp_path / "g", text), format=format)
    for format in ("parquet", "arrow"):
        with pytest.raises(GraphError, match=r"pip install 'sigps\[io\]'"):
            load(write(tmp_path / "g", "x"), format=format)


def test_importing_the_door_loads_no_heavy_package() -> None:
    heavy = {"pyarrow", "scipy", "pandas", "numba", "zstandard"}
    code = f"import sys, sigps.graph.load; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("g.txt", "1 2 0.5\n2 3 1.5\n", {"weights": True}),
        ("g.txt", "a b\nb c\n", {"ids": "string"}),
        ("g.graph", "3 2\n2\n1 3\n2\n", {}),
        ("g.adj", "1 2\n2 3\n", {}),
    ],
)
def test_reading_text_leaves_pandas_alone(
    tmp_path: Path, name: str, text: str, options: dict[str, Any]
) -> None:
    path = str(write(tmp_path / name, text))
    code = (
        f"import sys, sigps; graph = sigps.load({path!r}, **{options!r}); "
        "print(graph.num_vertices, 'pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3 True False"


@pytest.mark.parametrize("size", [2, 3])
def test_an_error_in_one_ranks_share_is_raised_by_all(tmp_path: Path, run_ranks: Ranks, size: int) -> None:
    lines = [f"{i} {i + 1}\n" for i in range(1000)]
    lines[700] = "700 x\n"
    path = write(tmp_path / "g.txt", "".join(lines))

    def problem(group: Group) -> str:
        with pytest.raises(GraphError) as caught:
            load(path, group=group)
        return str(caught.value)

    problems = run_ranks(size, problem)
    assert all("g.txt:701: the target id 'x' is not an integer" in text for text in problems)
    assert sum(text.startswith(f"rank {700 * size // 1000} ") for text in problems) == size - 1


def test_a_missing_file_is_an_error_on_every_rank(tmp_path: Path, run_ranks: Ranks) -> None:
    def problem(group: Group) -> str:
        with pytest.raises(GraphError) as caught:
            load(tmp_path / "nothing.txt", group=group)
        return str(caught.value)

    assert all("nothing.txt: no such file" in text for text in run_ranks(3, problem))


def test_a_failure_that_is_no_graph_error_is_raised_as_it_is(
    tmp_path: Path, run_ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
        def chunks() -> Any:
            if group.rank == group.size - 1:
                raise MemoryError("no room")
            yield EdgeChunk(*[own_ids(3, Alone(), "g")] * 2)

        return EdgeInput("snap", True, chunks())

    known = {"snap": Format(read, (".txt",))}
    monkeypatch.setattr(load_module, "FORMATS", known)
    path = write(tmp_path / "g.txt", "1 2\n")
    with pytest.raises(MemoryError, match="no room"):
        load(path)

    def problem(group: Group) -> str:
        with pytest.raises((GraphError, MemoryError)) as caught:
            load(path, group=group)
        return f"{caught.type.__name__}: {caught.value}"

    assert run_ranks(2, problem) == [
        "GraphError: rank 1 failed: MemoryError: no room",
        "MemoryError: no room",
    ]


def test_the_report_counts_what_all_ranks_found(tmp_path: Path, run_ranks: Ranks) -> None:
    path = write(tmp_path / "g.txt", "# c\n1 2 9\n1 2 9\n\n3 3 9\n# d\n2 1 9\n")

    def account(group: Group) -> Any:
        report = load(path, group=group, directed=False).report
        return [report.rows_skipped, report.edges_given, report.duplicates, report.self_loops, report.notes]

    expected = [
        3,
        4,
        2,
        1,
        ["column 2 not read (counted from 0; weights= and columns= read further columns)"],
    ]
    assert account(Alone()) == expected
    assert run_ranks(3, account) == [expected] * 3


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(("first", "end"), [(1, 10), (2**32 - 4, 2**32 + 5)])
def test_own_ids_make_up_the_range(size: int, first: int, end: int) -> None:
    class Rank(Alone):
        def __init__(self, rank: int) -> None:
            self.rank, self.size = rank, size

    shares = [own_ids(end - first, Rank(rank), "g", base=first).tolist() for rank in range(size)]
    assert [v for share in shares for v in share] == list(range(first, end))


LARGE = 2**53 + 1
"""The least whole number that float64 rounds."""

WHOLE = [(1, 2, 5), (2, 3, LARGE), (3, 4, -LARGE), (4, 5, 2**63 - 1)]


def lines_of(edges: list[tuple[Any, ...]], mark: str = " ") -> str:
    return "".join(mark.join(map(str, edge)) + "\n" for edge in edges)


class TestWholeWeights:
    @pytest.mark.parametrize("size", [1, 3])
    @pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv.gz", "g.e"])
    def test_stay_what_they_are(self, run_ranks: Ranks, tmp_path: Path, name: str, size: int) -> None:
        edges = [(u, u + 1, u % 7) for u in range(9, 30_000)]
        mark = {"csv": ",", "tsv": "\t"}.get(name.split(".")[1], " ")
        path = write(tmp_path / name, lines_of([*WHOLE, *edges], mark))
        write(tmp_path / "g.v", lines_of([(u,) for u in range(1, 30_001)]))
        options = {"directed": True} if name == "g.e" else {"weights": True}
        assert load_in_ranks(run_ranks, size, path, **options)[0] == [*WHOLE, *edges]
        path = write(tmp_path / name, lines_of([*edges, *WHOLE], mark))
        assert load_in_ranks(run_ranks, size, path, **options)[0] == [*WHOLE, *edges]

    def test_the_report_says_so(self, tmp_path: Path) -> None:
        path = write(tmp_path / "g.txt", "# c\n" + lines_of(WHOLE))
        (note,) = load(path, weights=True).report.notes
        assert note.startswith(
            f"weights are int64, which took reading the file twice: {path}:3: the weight {LARGE}"
        )

    def test_numbers_that_floats_hold_are_floats(self, tmp_path: Path) -> None:
        path = write(tmp_path / "g.txt", f"1 2 {2**53}\n2 3 {-(2**60)}\n3 4 1e300\n4 5 {LARGE}.0\n")
        assert arcs(load(path, weights=True)) == [
            (1, 2, 2.0**53),
            (2, 3, -(2.0**60)),
            (3, 4, 1e300),
            (4, 5, 2.0**53),
        ]

    def test_an_asked_for_float_rounds(self, tmp_path: Path) -> None:
        path = write(tmp_path / "g.txt", f"1 2 {LARGE}\n2 3 0.5\n")
        assert arcs(load(path, weights=(2, "float64"))) == [(1, 2, 2.0**53), (2, 3, 0.5)]

    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("other", ["0.5", str(2**63), "1e3"])
    @pytest.mark.parametrize("first", [True, False])
    def test_among_other_numbers(
        self, run_ranks: Ranks, tmp_path: Path, other: str, first: bool, size: int
    ) -> None:
        large, rest = f"1 2 {LARGE}\n", f"2 3 {other}\n"
        path = write(tmp_path / "g.txt", large + rest if first else rest + large)
        problem = rf"g\.txt:\d: the weight '?{other}.*g\.txt:\d: the weight \d+ is a whole number beyond"
        with pytest.raises(
            GraphError, match=problem + r'.*\(2, "float64"\) for .weight. takes all as floats'
        ):
            load_in_ranks(run_ranks, size, path, weights=True)

    def test_other_columns(self, tmp_path: Path) -> None:
        path = write(tmp_path / "g.txt", f"1 2 0.5\n2 3 {LARGE}\n")
        with pytest.raises(GraphError, match=rf"g\.txt:2: the time {LARGE} is a whole number beyond"):
            load(path, columns={"time": 2})
        ages = write(tmp_path / "v.csv", f"id,age\n1,0.5\n2,{LARGE}\n3,1\n")
        with pytest.raises(GraphError, match=rf"v\.csv:3: the age {LARGE} is a whole number beyond"):
            load(path, vertices=ages)
        adjacency = write(tmp_path / "g.adj", f"1 2 0.5\n2 3 {LARGE}\n")
        with pytest.raises(GraphError, match=rf"g\.adj:2: {LARGE} is a whole number beyond"):
            load(adjacency, format="adjacency", weights=True)
        arcs_file = write(tmp_path / "g.gr", f"p sp 3 2\na 1 2 0.5\na 2 3 {LARGE}\n")
        with pytest.raises(GraphError, match=rf"g\.gr:3: the weight {LARGE} is a whole number beyond"):
            load(arcs_file)

    def test_lists(self) -> None:
        with pytest.raises(GraphError, match=rf"weight\[1\] is {LARGE}: among floats"):
            Graph.from_edges([0, 1], [1, 2], [0.5, LARGE])
        with pytest.raises(GraphError, match=rf"vertex column 'at'\[1, 0\] is {-LARGE}: among floats"):
            Graph.from_edges([0], [1]).with_vertex_columns({"at": [[0.5, 1], [-LARGE, 2]]})
        assert Graph.from_edges([0], [1], [float(2**60)]).columns["weight"].tolist() == [2.0**60]
