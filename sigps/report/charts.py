"""The charts of a report, as Vega-Lite specifications without data; the page gives them rows, widths and colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sigps.extras import needs

if TYPE_CHECKING:
    import altair

__all__ = ["DIRECTIONS", "degree_chart", "superstep_charts"]

DIRECTIONS = ("push", "pull", "mailbox", "edge", "at once")
"""In the order of the page's colours; any other is grey."""

_CHARTS = (
    ("seconds", "time of a superstep (s)", ".3s"),
    ("active", "active vertices", ",d"),
    ("messages", "messages", ",d"),
    ("bytes_moved", "bytes moved between ranks", ".3s"),
    ("gigabytes_per_second", "memory traffic, at least (GB/s)", ".3s"),
    ("imbalance", "imbalance: slowest rank over the mean", ".3f"),
)
_MOST_LARGE_POINTS = 120


def superstep_charts(columns: Mapping[str, Sequence[Any]], roof: float | None = None) -> list[dict[str, Any]]:
    """Return a chart over supersteps for each column that has something to show.

    Args:
        columns: `figures.COLUMNS`.
        roof: The bandwidth of memory in GB/s, drawn as a line; None where it is not known.

    Returns:
        For each its `title` and its `spec`. Rows of the data are objects with the names of the columns.
    """
    with needs("altair", "report"):
        import altair

    return [
        {"title": title, "spec": _over_supersteps(altair, name, number, len(columns[name]), roof)}
        for name, title, number in _CHARTS
        if any(value > (1 if name == "imbalance" else 0) for value in columns[name])
    ]


def _over_supersteps(alt: Any, name: str, number: str, num_rows: int, roof: float | None) -> dict[str, Any]:
    is_ratio = name == "imbalance"
    x = alt.X(
        "superstep:Q", title="superstep", axis=alt.Axis(tickMinStep=1, tickCount=6, format=",d", grid=False)
    )
    y = alt.Y(
        f"{name}:Q",
        title=None,
        scale=alt.Scale(type="linear", zero=False) if is_ratio else alt.Scale(type="log"),
        axis=alt.Axis(format=".2~f" if is_ratio else ".2~s", tickCount=5),
    )
    shown = [
        alt.Tooltip("superstep:Q", format=","),
        alt.Tooltip("direction:N"),
        alt.Tooltip(f"{name}:Q", format=number),
    ]
    base = alt.Chart().transform_filter(f"datum.{name} > 0")
    line = base.mark_line(strokeWidth=1, opacity=0.45, interpolate="linear").encode(x=x, y=y)
    points = base.mark_circle(opacity=0.9, size=34 if num_rows <= _MOST_LARGE_POINTS else 9).encode(
        x=x,
        y=y,
        color=alt.Color("direction:N", legend=None, scale=alt.Scale(domain=list(DIRECTIONS))),
        tooltip=shown,
    )
    layers = [line, points]
    if name == "gigabytes_per_second" and roof is not None:
        rule = alt.Chart().mark_rule(strokeDash=[5, 4], color="#888").encode(y=alt.datum(roof))
        text = f"roof {roof:,.0f} GB/s"
        label = rule.mark_text(align="left", dx=4, dy=-6, color="#888", text=text).encode(x=alt.value(0))
        layers += [rule, label]
    return _spec(alt.layer(*layers), height=190)


def degree_chart() -> dict[str, Any]:
    """Return the chart of vertices by class of degree: rows of `kind`, `degree` (text), `order` and `vertices`."""
    with needs("altair", "report"):
        import altair as alt

    labels = alt.Axis(labelAngle=0, labelOverlap=True)
    bars = (
        alt.Chart()
        .transform_filter("datum.vertices > 0")
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("degree:N", sort=alt.SortField("order"), title="degree", axis=labels),
            xOffset=alt.XOffset("kind:N", sort="descending"),
            y=alt.Y(
                "vertices:Q",
                title="vertices",
                scale=alt.Scale(type="log", domainMin=0.5),
                axis=alt.Axis(format=".2~s", tickCount=5),
            ),
            y2=alt.Y2(datum=0.5),
            color=alt.Color("kind:N", title=None, sort="descending", legend=alt.Legend(orient="top")),
            tooltip=[alt.Tooltip("kind:N"), alt.Tooltip("degree:N"), alt.Tooltip("vertices:Q", format=",d")],
        )
    )
    return _spec(bars, height=230)


def _spec(chart: altair.TopLevelMixin, *, height: int) -> dict[str, Any]:
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    for part in (spec, *spec.get("layer", ())):  # Altair names data that it has not; the page brings its own
        for ours in ("data", "config", "datasets"):
            part.pop(ours, None)
    return spec
