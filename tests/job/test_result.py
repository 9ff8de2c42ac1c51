"""The result: access by name, highest values, tables, and writing that loses nothing."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_group import run_ranks

import sigps
from sigps import ConfigError, GraphError, OutputError, read_result
from sigps.apps import BFS
from sigps.engine.stats import SuperstepStats
from sigps.group import Alone, Group
from sigps.job.result import Result, highest
from sigps.job.table_file import check_output, write_table


def a_result(group: Group | None = Alone(), /, **fields: Any) -> Result:  # noqa: B008
    fields = fields or {"rank": [0.25, 0.5, 0.25], "level": [0, 9223372036854775807, 1]}
    arrays = {name: np.array(values) for name, values in fields.items()}
    count = len(next(iter(arrays.values())))
    return Result(
        ids=np.arange(10, 10 + 10 * count, 10) + (group.rank if group else 0),
        fields=arrays,
        reason="converged",
        supersteps=2,
        stats=[SuperstepStats(0, "push", 3, 4, 0, 0.5, 1.0), SuperstepStats(1, "-", 3, 1, 0, 0.25, 1.0)],
        aggregators={"error": 0.5},
        device="cpu",
        writers=group,
    )


def test_fields_by_name() -> None:
    result = a_result()
    assert result.fields == ("rank", "level")
    assert result["rank"].tolist() == [0.25, 0.5, 0.25]
    assert "rank" in result
    assert "rnk" not in result
    assert list(result) == ["rank", "level"]
    assert result.num_vertices == 3


def test_an_unknown_field_names_the_nearest_and_all() -> None:
    with pytest.raises(ConfigError, match=r"no field 'rnk'; did you mean 'rank'\? It has: rank, level"):
        a_result()["rnk"]


def test_summary() -> None:
    text = a_result().summary()
    assert text.startswith("converged: ")
    assert text.endswith("after 2 supersteps (5 messages, 0.75 s) on device cpu")
    assert "<Result: rank, level of 3 vertices; converged" in repr(a_result())


def test_top_orders_ties_by_id() -> None:
    result = a_result(rank=[0.25, 0.5, 0.25])
    assert result.top("rank", 2) == [(20, 0.5), (10, 0.25)]
    assert result.top("rank", 9) == [(20, 0.5), (10, 0.25), (30, 0.25)]
    assert result.top("rank", 0) == []


def test_top_of_nan_infinity_booleans_and_large_integers() -> None:
    assert a_result(x=[float("nan"), 1.0, float("inf")]).top("x", 3)[:2] == [(30, float("inf")), (20, 1.0)]
    assert a_result(x=[float("nan"), -float("inf"), 1.0]).top("x", 2) == [(30, 1.0), (20, -float("inf"))]
    assert a_result(x=[False, True, True]).top("x", 1) == [(20, True)]
    big = np.array([2**63, 2**63 + 1, 0], dtype=np.uint64)
    assert a_result(x=big).top("x", 1) == [(20, 2**63 + 1)]


def test_top_of_string_ids_puts_no_vertex_last() -> None:
    parents = np.array([None, "a", "b"], dtype=object)
    assert a_result(x=parents).top("x", 3) == [(30, "b"), (20, "a"), (10, None)]
    assert a_result(x=parents).top("x", 1) == [(30, "b")]


def test_top_of_an_empty_result() -> None:
    assert a_result(x=np.zeros(0)).top("x", 5) == []


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(0, 40))
def test_top_equals_a_full_sort(values: list[int], k: int) -> None:
    result = a_result(x=values)
    slow = sorted(zip(result.ids.tolist(), values, strict=True), key=lambda pair: (-pair[1], pair[0]))[:k]
    assert result.top("x", k) == slow


@given(st.lists(st.floats(), max_size=8), st.lists(st.floats(), max_size=8), st.integers(0, 6))
def test_the_highest_of_two_ranks_are_the_highest_of_all(a: list[float], b: list[float], k: int) -> None:
    left, right = list(enumerate(a)), list(enumerate(b, start=100))
    merged = highest(highest(left, k) + highest(right, k), k)
    assert repr(merged) == repr(highest(left + right, k))


def test_tables() -> None:
    table = a_result().to_arrow()
    assert table.column_names == ["id", "rank", "level"]
    assert table["id"].to_pylist() == [10, 20, 30]
    frame = a_result().to_pandas(["level"])
    assert list(frame.columns) == ["id", "level"]
    assert frame["level"].tolist() == [0, 9223372036854775807, 1]


def test_string_ids() -> None:
    result = a_result(x=[1, 1])
    result.ids = np.array(["b", "ä"])
    assert result.to_arrow()["id"].to_pylist() == ["b", "ä"]
    assert result.top("x", 2) == [("b", 1), ("ä", 1)]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    a_result().write_parquet(path)
    assert pyarrow.parquet.read_table(path).equals(a_result().to_arrow())
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    a_result().write(path, ["level"])
    assert path.read_text() == "id,level\n10,0\n20,9223372036854775807\n30,1\n"
    a_result(x=[float("inf"), 0.1]).write_csv(path)
    assert pyarrow.csv.read_csv(path)["x"].to_pylist() == [float("inf"), 0.1]


def test_parts_of_several_ranks(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    for size in (3, 2):  # the second run has fewer ranks: no part of the first may stay
        run_ranks(size, lambda group: a_result(group).write(path))
        names = [f"part-{r:05}.parquet" for r in range(size)]
        assert sorted(p.name for p in path.iterdir()) == ["_SUCCESS", *names]
    assert pyarrow.parquet.read_table(path)["id"].to_pylist() == [10, 20, 30, 11, 21, 31]
    assert read_result(path)["id"].to_pylist() == [10, 20, 30, 11, 21, 31]
    manifest = json.loads((path / "_SUCCESS").read_text())
    assert (manifest["ranks"], manifest["rows"]) == (2, 6)
    assert [(p["rows"], p["crc32"]) for p in manifest["parts"]] == [
        (3, zlib.crc32((path / name).read_bytes())) for name in names
    ]
    assert os.listdir(tmp_path) == ["r.parquet"]


def test_a_result_replaces_one_of_another_number_of_ranks(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for size in (1, 2, 1, 3):
        run_ranks(size, lambda group: a_result(group, x=[1]).write(path))
        assert read_result(path)["id"].to_pylist() == [10 + rank for rank in range(size)]
    assert os.listdir(tmp_path) == ["r.csv"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_rank_that_fails_leaves_the_older_result(tmp_path: Path, failing: int) -> None:
    path = tmp_path / "r.csv"
    run_ranks(2, lambda group: a_result(group, x=[1]).write(path))

    def write(group: Group) -> str:
        result = a_result(group, x=[2])
        if group.rank == failing:
            result.to_arrow = lambda fields=None: FullDisk()  # type: ignore[method-assign,assignment,return-value]
        with pytest.raises((OutputError, GraphError)) as caught:
            result.write_parquet(path)
        return str(caught.value)

    for problem in run_ranks(2, write):
        assert f"{path} cannot be written: No space left on device. Make room there" in problem
    assert read_result(path)["x"].to_pylist() == [1, 1]
    assert os.listdir(tmp_path) == ["r.csv"]


class FullDisk:
    """A table for which there is no room."""

    num_rows = 1
    column_names = ()

    def __getattr__(self, name: str) -> Any:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("size", [1, 2])
def test_what_a_dead_run_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path, size: int) -> None:
    path = tmp_path / "r.csv"
    dead, living = (tmp_path / f".r.csv.{digit * 16}.tmp" for digit in "ab")
    for folder in (dead, living):
        folder.mkdir()
        (folder / "part-00000.csv").write_text("id,x")
    (tmp_path / f".r.csv.{'c' * 16}.tmp").write_text("id,x")
    (tmp_path / f".s.csv.{'c' * 16}.tmp").write_text("of another result")
    lock = os.open(living, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        run_ranks(size, lambda group: a_result(group, x=[1]).write(path))
    finally:
        os.close(lock)
    assert sorted(os.listdir(tmp_path)) == [living.name, f".s.csv.{'c' * 16}.tmp", "r.csv"]


def spoil(folder: Path, way: str) -> None:
    manifest, part = folder / "_SUCCESS", folder / "part-00001.csv"
    text = manifest.read_text()
    if way == "no manifest":
        manifest.unlink()
    elif way == "cut manifest":
        manifest.write_text(text[:40])
    elif way == "a list":
        manifest.write_text("[]")
    elif way == "another path":
        manifest.write_text(text.replace("part-00001", "../part-00001"))
    elif way == "a missing part":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes().replace(b"1", b"2"))


@pytest.mark.parametrize(
    ("way", "complaint"),
    [
        ("no manifest", "has no _SUCCESS: the run that wrote it did not finish"),
        ("cut manifest", "_SUCCESS is damaged"),
        ("a list", "_SUCCESS is damaged"),
        ("another path", "_SUCCESS is damaged: .* is no part of it"),
        ("a missing part", "part-00001.csv cannot be read: No such file"),
        ("a changed part", "part-00001.csv is not as it was written"),
    ],
)
def test_a_folder_that_is_not_whole_is_not_read(tmp_path: Path, way: str, complaint: str) -> None:
    run_ranks(2, lambda group: a_result(group).write(tmp_path / "r.csv"))
    spoil(tmp_path / "r.csv", way)
    with pytest.raises(OutputError, match=complaint):
        read_result(tmp_path / "r.csv")


def test_reading_one_file(tmp_path: Path) -> None:
    for name in ("r.csv", "r.parquet"):
        a_result().write(tmp_path / name)
        assert read_result(tmp_path / name).equals(a_result().to_arrow())
    with pytest.raises(OutputError, match=r"absent\.csv: there is no such file"):
        read_result(tmp_path / "absent.csv")
    with pytest.raises(ConfigError, match=r"the name ends in '\.txt'"):
        read_result(tmp_path / "r.txt")


def test_who_has_no_part_writes_nothing(tmp_path: Path) -> None:
    a_result(None).write(tmp_path / "r.csv")
    a_result(None).write_csv(tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 2])
def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path, size: int) -> None:
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "part-00000.csv").touch()
    (tmp_path / "notes.txt").touch()
    with pytest.raises((ConfigError, GraphError), match="is a folder, and no finished result"):
        run_ranks(size, lambda group: a_result(group).write_parquet(tmp_path))
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("name", "size", "complaint"),
    [
        ("r.txt", 1, "the name ends in '.txt'; a result is written as .parquet or .csv"),
        ("r", 1, "the name ends in ''"),
        ("absent/r.csv", 1, "there is no folder"),
        ("file/r.csv", 1, "there is no folder"),
        ("folder.csv", 1, "is a folder, and no finished result, so it is not replaced"),
        ("mine.csv", 2, "is a folder, and no finished result, so it is not replaced"),
        ("/proc/r.csv", 1, "cannot write in the folder /proc"),
    ],
)
def test_unwritable_output_is_found_beforehand(tmp_path: Path, name: str, size: int, complaint: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "mine.csv").mkdir()
    (tmp_path / "mine.csv" / "notes.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=complaint):
        check_output(tmp_path / name, group_size=size)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_writable_output_leaves_nothing_behind(tmp_path: Path) -> None:
    check_output(tmp_path / "r.csv")
    check_output(tmp_path / "r.parquet", group_size=4)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_result(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("old")
    with pytest.raises(ConfigError, match="no field 'absent'"):
        a_result().write(path, ["absent"])
    with pytest.raises(OutputError, match="No space left"):
        write_table(FullDisk(), path, ".parquet", Alone())  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.mpi
def test_a_script_under_mpirun_writes_the_whole_result_once(tmp_path: Path) -> None:
    mpirun = Path(sys.executable).with_name("mpirun")
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python: pip install 'sigps[mpi]'")
    script = tmp_path / "script.py"
    script.write_text(
        "import sigps\n"
        "from sigps.apps import OutDegree\n"
        "graph = sigps.Graph.from_edges([1, 2, 3, 3], [2, 3, 1, 2])\n"
        "for i in range(3):  # ranks that both wrote would do so in any order\n"
        f"    sigps.run(OutDegree(), graph, device='python').write_csv(f'{tmp_path}/{{i}}.csv')\n"
    )
    ended = subprocess.run(
        [str(mpirun), "-n", "3", sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    for i in range(3):
        assert (tmp_path / f"{i}.csv").read_text() == "id,degree\n1,1\n2,1\n3,2\n"


def test_a_notebook_shows_the_end_and_the_highest() -> None:
    shown = a_result(name=np.array([1.5, 2.5, 0.5]))._repr_html_()
    assert "converged: no vertex is active" in shown
    assert shown.index("<td>20</td><td>2.5</td>") < shown.index("<td>10</td><td>1.5</td>")
    assert "<tbody>" not in a_result(walk=np.zeros((3, 4)))._repr_html_()  # vectors have no order


def test_polars_and_streams() -> None:
    result = a_result()
    assert result.to_polars(["rank"]).to_dict(as_series=False) == {
        "id": [10, 20, 30],
        "rank": [0.25, 0.5, 0.25],
    }
    assert polars.DataFrame(result).columns == ["id", "rank", "level"]


def test_fields_cross_by_dlpack_without_a_copy() -> None:
    result = sigps.run(BFS(source=0), sigps.Graph.from_edges([0, 1], [1, 2]), device="cpu")
    assert np.shares_memory(np.from_dlpack(result["level"]), result["level"])


def test_networkx_has_the_fields() -> None:
    graph = sigps.Graph.from_edges([5, 7], [7, 9], weights=[1.5, 2.0])
    result = sigps.run(BFS(source=7), graph, device="cpu")
    made = result.to_networkx()
    assert dict(made.nodes(data=True)) == {
        5: {"level": -1, "parent": None},
        7: {"level": 0, "parent": 7},
        9: {"level": 1, "parent": 7},
    }
    assert list(made.edges(data="weight")) == [(5, 7, 1.5), (7, 9, 2.0)]
    del graph
    with pytest.raises(ConfigError, match="the graph of this result is gone"):
        result.to_networkx()
    with pytest.raises(ConfigError, match="has 2 vertices, and this result 3"):
        result.to_networkx(sigps.Graph.from_edges([0], [1]))
