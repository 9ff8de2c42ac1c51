"""What a notebook shows of a graph or a result: a small table, in the notebook's own colours."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

from sigps.graph.degree_classes import DegreeClass

__all__ = ["card", "degree_bars", "head_table"]


def card(title: str, rows: Mapping[str, str], *parts: str) -> str:
    """Return HTML: a title, rows of names and texts, which are escaped, and further HTML."""
    lines = (
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f"<div><b>{html.escape(title)}</b><table>{''.join(lines)}</table>{''.join(parts)}</div>"


def head_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of a few rows; numbers have six digits."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_text(value))}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def degree_bars(classes: Sequence[DegreeClass], what: str) -> str:
    """Return an SVG with a bar for each class of degrees; its height is the logarithm of the vertices."""
    most = max((math.log1p(c["vertices"]) for c in classes), default=0.0) or 1.0
    bars = []
    for i, c in enumerate(classes):
        height = 40 * math.log1p(c["vertices"]) / most
        degrees = f"{c['from']:,}" if c["from"] == c["to"] else f"{c['from']:,} to {c['to']:,}"
        bars.append(
            f'<rect x="{12 * i}" y="{42 - height:.1f}" width="10" height="{height:.1f}" rx="1">'
            f"<title>{html.escape(what)} {degrees}: {c['vertices']:,} vertices</title></rect>"
        )
    return (
        f'<svg width="{12 * len(classes)}" height="44" fill="#4c86d8" role="img" '
        f'aria-label="vertices by {html.escape(what)}">{"".join(bars)}</svg>'
        f"<div><small>vertices by {html.escape(what)} (0, 1, 2&ndash;3, 4&ndash;7, &hellip;; heights are logarithms)"
        "</small></div>"
    )


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
