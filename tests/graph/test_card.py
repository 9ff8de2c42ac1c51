"""What a notebook shows of graphs."""

from __future__ import annotations

from sigps import Graph
from sigps.graph.card import card, degree_bars, head_table


def test_a_graph_shows_its_size_columns_and_degrees() -> None:
    graph = Graph.from_edges(["<a>", "<a>"], ["b", "c"], [1.0, 2.0])
    shown = graph._repr_html_()
    for text in (
        "2 stored, directed",
        '<td style="text-align:left">3</td>',
        "weight (float64)",
        "vertices by out-degree",
    ):
        assert text in shown
    assert shown.count("<rect") == 3  # degree 0, 1, and 2 to 3


def test_text_is_escaped() -> None:
    assert "<b>x" not in card("title", {"<b>x": "<b>x"})
    assert "<b>x" not in head_table(["<b>x"], [["<b>x", 1.0]])


def test_the_highest_bar_is_of_most_vertices() -> None:
    shown = degree_bars([{"from": 0, "to": 0, "vertices": 0}, {"from": 1, "to": 1, "vertices": 9}], "degree")
    assert 'height="0.0"' in shown
    assert 'height="40.0"' in shown
    assert "degree 1: 9 vertices" in shown
