"""Bring the tables and the figure of `docs/measured.md` up to date with `scripts/bench/results/`.

    python scripts/bench/pages.py

A table stands below a comment that names the file of results, its columns, and perhaps a condition on its rows:

    <!-- table gpu-nvidia-h200.json: work, whole_ms where graph=kron-22 -->
    <!-- end -->

Rows that lack the last column are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "measured.md"
FIGURE = REPOSITORY / "docs" / "figures" / "peers.svg"
RESULTS = REPOSITORY / "scripts" / "bench" / "results"
MARK = re.compile(
    r"^<!-- table (\S+): ([\w, ]+?)(?: where (\w+)=(.+?))? -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)

STEPS = (10, 100, 1000, 10_000)
"""Where the figure's logarithmic axis has numbers."""


def with_tables(page: str) -> str:
    """Return the text of a page with its tables made anew."""
    return MARK.sub(_marked_table, page)


def _marked_table(found: re.Match[str]) -> str:
    name, columns, key, value = found.groups()
    measured = json.loads((RESULTS / name).read_text())
    names = [column.strip() for column in columns.split(",")]
    mark = found[0].split("\n", 1)[0]
    table = _table_lines(measured, names, key, value)
    return "\n".join([mark, "", *table, "", _conditions(measured), "", "<!-- end -->"])


def _table_lines(measured: dict[str, Any], names: list[str], key: str | None, value: str) -> Iterator[str]:
    yield f"| {' | '.join(name.replace('_', ' ') for name in names)} |"
    yield f"|{'---|' * len(names)}"
    for row in measured["rows"]:
        if names[-1] in row and (key is None or row[key] == value):
            yield f"| {' | '.join(str(row[name]) for name in names)} |"


def _conditions(measured: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    gpu = f"{measured['gpu']}, driver {measured['driver']}; " if "gpu" in measured else ""
    threads = f", {measured['threads']} threads" if "threads" in measured else ""
    return (
        f"{gpu}{measured['processor']}, {measured['cores']} cores{threads}; Python {measured['python']}, "
        f"{versions}; {measured['date']}, commit {measured['commit']}."
    )


def draw(target: Path) -> None:
    """Draw the milliseconds of the table of peers on CPU cores."""
    import altair

    rows = json.loads((RESULTS / "cpu-kron-20.json").read_text())["rows"]
    bars = [
        {"work": row["work"], "by": by, "ms": ms, "label": f"{ms:,.0f}"}
        for row in rows
        for by, ms in (("sigps", row["sigps_ms"]), (row["peer"].split(",")[0], row["peer_ms"]))
    ]
    chart = altair.Chart(altair.Data(values=bars)).encode(
        y=altair.Y("by:N", title=None, sort=["sigps"]),
        x=altair.X(
            "ms:Q", title="milliseconds (logarithmic)", axis=altair.Axis(grid=False, values=STEPS)
        ).scale(type="log", domain=[STEPS[0], 60_000]),
    )
    colour = altair.Color("by:N", legend=None).scale(
        domain=["sigps", "NetworKit", "SciPy dijkstra"], range=["#1f6feb", "#9aa4af", "#9aa4af"]
    )
    text = chart.mark_text(align="left", dx=4).encode(text="label:N")
    both = (chart.mark_bar().encode(color=colour, x2=altair.datum(STEPS[0])) + text).properties(
        width=460, height=34
    )
    row_titles = altair.Row("work:N", title=None, sort=[row["work"] for row in rows]).header(
        labelAngle=0, labelAlign="left", labelLimit=200
    )
    target.parent.mkdir(exist_ok=True)
    both.facet(row=row_titles, spacing=6).resolve_scale(y="independent").configure(
        background="white"
    ).configure_view(stroke=None).save(target)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
    draw(FIGURE)
