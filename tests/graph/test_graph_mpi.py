"""Graphs on the ranks of mpirun: what the tests with threads cannot see, such as types that MPI refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from battery import BATTERY
from places import SUPPORT

from sigps.graph import Graph
from sigps.graph.formats.edge_list import write_edge_list
from sigps.graph.formats.matrix_market import write_matrix_market
from sigps.graph.load import open_store
from sigps.group import Alone, Group

MPIRUN = Path(sys.executable).parent / "mpirun"


def check_graphs(group: Group, folder: Path) -> None:
    """Build, save, open and write every graph of the battery; each rank compares its rows. Collective."""
    for name, sample in BATTERY.items():
        alone = sample.build(group=Alone())
        spread = sample.build(group=group)
        assert_rows(spread, alone)
        assert_rows(spread.undirected(), alone.undirected())
        assert_rows(spread.both_ways(), alone.both_ways())
        columns: dict[str, object] = {"row": np.arange(2.0 * alone.num_vertices).reshape(-1, 2), "byte": {}}
        for oid in alone.ids.to_oids(np.arange(min(1, alone.num_vertices))).tolist():
            columns["byte"] = {oid: 5}
        given = spread.with_vertex_columns(columns).undirected().vertex_columns
        whole = alone.with_vertex_columns(columns).undirected().vertex_columns
        rows = spread.undirected()
        first, stop = rows.first_row, rows.first_row + rows.num_rows
        assert {n: c.tolist() for n, c in given.items()} == {
            n: c[first:stop].tolist() for n, c in whole.items()
        }
        spread.save(folder / f"{name}.sigps")
        assert_rows(open_store(folder / f"{name}.sigps", group, verify="full"), alone)
        for write, suffix in ((write_edge_list, "txt"), (write_matrix_market, "mtx")):
            write(spread, folder / f"{name}.{suffix}")
            if group.rank == 0:
                write(alone, folder / f"{name}-alone.{suffix}")
                whole = (folder / f"{name}-alone.{suffix}").read_bytes()
                assert (folder / f"{name}.{suffix}").read_bytes() == whole


def assert_rows(spread: Graph, alone: Graph) -> None:
    first, stop = spread.first_row, spread.first_row + spread.num_rows
    cut = slice(int(alone.offsets[first]), int(alone.offsets[stop]))
    assert (spread.num_vertices, spread.num_edges) == (alone.num_vertices, alone.num_edges)
    assert spread.out_degrees().tolist() == alone.out_degrees()[first:stop].tolist()
    assert spread.in_degrees().tolist() == alone.in_degrees()[first:stop].tolist()
    assert spread.targets.tolist() == alone.targets[cut].tolist()
    for name, column in alone.columns.items():
        assert spread.columns[name].tolist() == column[cut].tolist()
    gids = np.arange(alone.num_vertices)
    assert spread.ids.to_oids(gids).tolist() == alone.ids.to_oids(gids).tolist()
    assert spread.ids.to_gids(alone.ids.to_oids(gids)).tolist() == gids.tolist()


@pytest.mark.mpi
def test_the_battery_under_mpirun(tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'sigps[mpi]'")
    if not MPIRUN.exists():
        pytest.skip(f"no {MPIRUN}: pip install 'sigps[mpi]'")
    script = (
        f"import sys, pathlib; sys.path[:0] = {[str(SUPPORT), str(Path(__file__).parent)]!r}\n"
        "from test_graph_mpi import check_graphs\n"
        "from sigps.group import world\n"
        f"check_graphs(world(), pathlib.Path({str(tmp_path)!r}))\n"
        "sys.stdout.write('equal\\n')\n"
    )
    command = [str(MPIRUN), "-n", "3", sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["equal"] * 3
