"""What tiles take, counted before they are laid out, beside another count on the host."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sigps.cli import main as cli
from sigps.engine.gpu.tile_sizes import measure_tiles
from sigps.engine.gpu.tiling import Tiling


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 39), max_size=12), min_size=40, max_size=40),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39), st.integers(500, 5000)), max_size=3),
    st.permutations(range(40)),
    st.integers(1, 40),
    st.integers(2, 5),
)
def test_slices_and_lines_are_those_of_the_pairs(
    rows: list[list[int]], long: list[tuple[int, int, int]], lids: list[int], size: int, shortest: int
) -> None:
    """Segment by segment: longer pairs in pieces of 2,048 edges, the others 32 a slice, the longest first."""
    for row, source, count in long:
        rows[row] = rows[row] + [source] * count
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    sources = np.array([source for row in rows for source in row], np.uint32)
    found = measure_tiles(
        offsets, sources, np.array(lids, np.uint32), Tiling(size, 3, 4, shortest_pair=shortest)
    )
    num_slices = num_lines = 0
    for segment in range(-(-40 // size)):
        pairs = [Counter(lids[source] // size for source in row)[segment] for row in rows]
        pieces = [min(2048, n - at) for n in pairs if n >= 512 for at in range(0, n, 2048)]
        lanes = sorted((n for n in pairs if shortest <= n < 512), reverse=True)
        num_slices += len(pieces) + -(-len(lanes) // 32)
        num_lines += sum(-(-n // 64) for n in pieces) + sum(-(-n // 2) for n in lanes[::32])
    assert (found.num_slices, found.num_lines) == (num_slices, num_lines)


def test_explain_says_what_tiles_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigps.engine.gpu.tiling.FEWEST_EDGES", 1)
    monkeypatch.setattr("sigps.engine.gpu.tiling._MOST_LEFT", np.inf)
    monkeypatch.setattr("sigps.engine.gpu.tiling.NEAR", 0)
    monkeypatch.setattr("sigps.engine.gpu.tiling.count_on_host.__defaults__", (0,))
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n2 0\n0 2\n")
    assert cli.execute(["explain", "sigps.apps:PageRank", "--graph", str(tmp_path / "graph.txt")]) == 0
    rows = 3 * 4 + 8 + 2 * 8 + 32 * 4  # degrees, offsets, slices, ends
    tiles = 32 * 4 + 32 * 4 + 2 * 4 + 4  # of one pair: a line, its rows, where it ends, the first slice
    shares = 133 * 4 + 4 + 33 * 4  # of 132 blocks, one of which has something
    assert f"tile bytes   {rows + tiles + shares:,}" in capsys.readouterr().out
