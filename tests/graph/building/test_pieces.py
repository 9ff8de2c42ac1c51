"""Graphs built in pieces: stores, commands, and what goes wrong. `test_build.py` compares their rows."""

from __future__ import annotations

import filecmp
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thread_group import run_ranks

import sigps
from sigps.cli.main import execute
from sigps.errors import ConfigError, GraphError
from sigps.graph import EdgeChunk, build_graph
from sigps.graph.building import pieces
from sigps.graph.formats import packed_store
from sigps.graph.generators.generate import generate


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few edges fill a file, and a few more all memory."""
    monkeypatch.setattr(pieces, "_FIXED_BYTES", 200)
    monkeypatch.setattr(pieces, "_BLOCK_EDGES", 7)


@pytest.mark.parametrize(("order", "free"), [("given", 10**9), ("degree", 10**9), ("degree", 300_000)])
@pytest.mark.parametrize("directed", [True, False])
def test_a_packed_store_has_the_bytes_of_one_from_memory(
    order: Any, free: int, directed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_store, "available_memory", lambda: free)
    options = {"scale": 9, "weights": "random", "seed": 4, "directed": directed, "duplicates": "keep"}
    generate("rmat", memory="100kB", scratch=tmp_path, **options).save(
        tmp_path / "a.sigps", packed=True, order=order
    )
    generate("rmat", **options).save(tmp_path / "b.sigps", packed=True, order=order)
    names = {path.name for path in (tmp_path / "b.sigps").iterdir()}
    assert filecmp.cmpfiles(tmp_path / "a.sigps", tmp_path / "b.sigps", names - {"header.msgpack"})[1:] == (
        [],
        [],
    )


def test_commands_leave_only_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges, store = tmp_path / "edges.csv", str(tmp_path / "out.sigps")
    edges.write_text("a,b,weight\nx,y,2\ny,z,3\nx,y,4\n")
    options = ["--packed", "--memory", "1MB", "--opt", "ids=string", "--opt", "weights=weight"]
    assert execute(["convert", str(edges), store, *options]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "out.sigps"]
    assert sigps.load(store).columns["weight"].tolist() == [2, 4, 3]
    options = ["--opt", "rows=9", "--opt", "columns=9", "--memory", "1"]
    assert execute(["generate", "grid", *options, "-o", str(tmp_path / "grid.sigps")]) == 1
    assert "a memory of 1 B is too little to build a graph of 81 vertices" in capsys.readouterr().err


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(
        GraphError, match=r"edges cannot wait in /nowhere: No such file or directory\. Free some"
    ):
        generate("path", n=100, memory="1MB", scratch="/nowhere")
    with pytest.raises(GraphError, match=r"would wait in .* files"):
        generate("complete", n=1000, memory=2 * (40 * 1000 + 200))
    with pytest.raises(ConfigError, match="memory='much' must be bytes"):
        generate("path", n=100, memory="much")
    generate("path", n=100).save(tmp_path / "store.sigps")
    with pytest.raises(ConfigError, match=r"is for graphs that are built, and .* is a native store"):
        sigps.load(tmp_path / "store.sigps", memory="1GB")
    with pytest.raises(GraphError, match="2 ranks share this one"):
        run_ranks(2, lambda group: generate("path", n=100, memory="1MB", group=group))
    with pytest.raises(GraphError, match="strings of NumPy or Arrow are not built in pieces"):
        build_graph([EdgeChunk(np.array(["a"]), np.array(["b"]))], directed=True, memory=10**6)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(GraphError, match=r"edges cannot wait in .*: File too large"):
            generate("path", n=100_000, memory="100MB", scratch=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
