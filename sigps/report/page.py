"""The page of a report: one HTML file with its data, style and scripts, which needs no network."""

from __future__ import annotations

import functools
import html
import importlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigps.errors import OutputError
from sigps.extras import needs
from sigps.graph.degree_classes import DegreeClass
from sigps.report.record import Finished, RunRecord
from sigps.whole_files import write_whole

if TYPE_CHECKING:
    import jinja2

__all__ = ["Report", "check_packages", "make_report", "page_environment"]


class Report:
    """A page about a run. A notebook shows it; `save` writes it.

    Attributes:
        figures: What it shows, as plain data.
        html: The page.
    """

    def __init__(self, figures: Mapping[str, Any]) -> None:
        self.figures = figures
        self.html = _rendered(figures)

    def save(self, path: str | Path) -> None:
        """Write the page to a file; an older one is replaced when the new one is whole.

        Raises:
            OutputError: If it cannot be written there.
        """
        try:
            write_whole(Path(path), lambda file: file.write(self.html.encode()))
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None

    def _repr_html_(self) -> str:
        frame = "width:100%;height:80vh;min-height:480px;border:0"
        return f'<iframe style="{frame}" srcdoc="{html.escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {self.figures['program']}, {len(self.html):,} bytes of HTML; save(path) writes it>"


def make_report(
    result: Finished,
    record: RunRecord,
    *,
    highest: Mapping[str, Sequence[tuple[Any, Any]]],
    degrees: Mapping[str, Sequence[DegreeClass]] | None = None,
    command: str | None = None,
) -> Report:
    """Return the page about a run; the arguments are those of `figures.figures`.

    Raises:
        ConfigError: If a package of the extra `report` is missing.
    """
    from sigps.report.figures import figures

    return Report(figures(result, record, highest=highest, degrees=degrees, command=command))


def check_packages() -> None:
    """Check that the packages of the extra `report` are here.

    Raises:
        ConfigError: If one is missing; it names the extra.
    """
    for package in ("altair", "vl_convert", "jinja2"):
        with needs(package, "report"):
            importlib.import_module(package)


def _rendered(figures: Mapping[str, Any]) -> str:
    from sigps.report.charts import DIRECTIONS, degree_chart, superstep_charts

    environment = page_environment()
    environment.filters["si"] = _short
    charts = superstep_charts(figures["supersteps"], figures["roof"])
    data = {
        "supersteps": figures["supersteps"],
        "directions": DIRECTIONS,
        "charts": [chart["spec"] for chart in charts],
        "degrees": figures["degrees"],
        "degreeChart": degree_chart() if figures["degrees"] else None,
    }
    return environment.from_string(_text("page.html.j2")).render(
        run=figures,
        charts=charts,
        spent=sum(phase["seconds"] for phase in figures["phases"]),
        data=_in_script(json.dumps(data, separators=(",", ":"))),
        style=_text("page.css"),
        script=_in_script_tag(_text("page.js")),
        library=_in_script_tag(_library()),
    )


def page_environment() -> jinja2.Environment:
    """Return Jinja2's environment for a page, with filters that write seconds, bytes and counts for people.

    Raises:
        ConfigError: If Jinja2 is missing.
    """
    from sigps.account import seconds_text
    from sigps.graph.report import bytes_text

    with needs("Jinja2", "report"):
        import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"seconds": seconds_text, "bytes": bytes_text, "count": lambda n: f"{n:,}"}
    return environment


@functools.cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script: `vegaEmbed`."""
    with needs("vl-convert-python", "report"):
        import vl_convert

    text: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return text


def _text(name: str) -> str:
    return (importlib.resources.files(__package__) / name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """Return JSON that no browser takes for the end of a script."""
    return text.replace("<", "\\u003c")


def _in_script_tag(text: str) -> str:
    return text.replace("</script", "<\\/script")


def _short(number: float) -> str:
    """Say a large number for people.

    >>> _short(1234567), _short(31), _short(2.5e9)
    ('1.23 M', '31', '2.50 G')
    """
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if number >= scale:
            return f"{number / scale:.2f} {unit}"
    return f"{number:,.0f}"
