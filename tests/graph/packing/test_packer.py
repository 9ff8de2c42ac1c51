"""Rows that are packed in pieces: the pages of all of them at once."""

from __future__ import annotations

import itertools

import numpy as np

from sigps.graph.packing.packer import PackableRows


def test_pages_of_pieces_are_those_of_all_rows() -> None:
    draw = np.random.default_rng(3)
    degrees = draw.integers(0, 9, 500)
    degrees[200] = 300  # more than a page has
    offsets = np.append(0, np.cumsum(degrees)).astype(np.uint64)
    rows = np.repeat(np.arange(degrees.size), degrees)
    targets = (rows + draw.integers(0, 5, rows.size)).astype(
        np.uint32
    )  # near their rows, so relative to them
    targets = targets[np.lexsort((targets, rows))]
    weights = draw.integers(0, 200, rows.size).astype(np.float32)
    whole = PackableRows(offsets, targets, [weights], None, 64)
    expected, found = list(whole.pages(1)), []
    begins = np.flatnonzero(~whole.table.continues)
    cut = [0, *whole.table.first_rows[begins[[7, 20]]].astype(int).tolist(), degrees.size]
    for first, end in itertools.pairwise(cut):
        arcs = slice(int(offsets[first]), int(offsets[end]))
        own = offsets[first : end + 1] - offsets[first]
        found += list(PackableRows(own, targets[arcs], [weights[arcs]], None, 64, first).pages(1))
    assert len(found) == len(expected) > 30
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.words, other.words)
        np.testing.assert_array_equal(one.columns[0], other.columns[0])
    assert any(page.words[3] & 2 for page in expected)  # what makes the first row's number matter
