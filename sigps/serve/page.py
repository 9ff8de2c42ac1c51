"""The page about a pool: one HTML file without scripts from elsewhere, which needs no network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sigps.errors import OutputError
from sigps.report.page import page_environment
from sigps.serve.overview import Overview, Window
from sigps.whole_files import write_whole

__all__ = ["page", "write_page"]

_MINUTE = 60.0
_WIDTH, _HEIGHT = 600, 60  # of a line of shares


def write_page(overview: Overview, path: str | Path, every: float | None = None) -> None:
    """Write the page; it replaces an older one when it is whole.

    Raises:
        ConfigError: If Jinja2 is missing.
        OutputError: If it cannot be written there.
    """
    text = page(overview, every)
    try:
        write_whole(Path(path), lambda file: file.write(text.encode()))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None


def page(overview: Overview, every: float | None = None) -> str:
    """Return the page.

    Args:
        overview: What it shows.
        every: It is written anew after so many seconds: a browser loads it again, and says when it has grown old.

    Raises:
        ConfigError: If Jinja2 is missing.
    """
    environment = page_environment()
    environment.filters |= {
        "percent": lambda share: "" if share is None else f"{100 * share:.1f} %",
        "index": lambda fairness: "" if fairness is None else f"{fairness:.3f}",
        "clock": lambda at: f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}",
    }
    recent = [window for window in overview.windows if window.end > overview.at - _MINUTE]
    taken = _sums(window.taken for window in recent)
    whole = sum(taken.values())
    weights = sum(tenant.weight for tenant in overview.tenants if tenant.active)
    indices = [window.fairness for window in recent if window.fairness is not None]
    return environment.from_string(_text(__package__, "page.html.j2")).render(
        pool=overview,
        every=every,
        style=_text("sigps.report", "page.css"),
        busy={device.name: _share_busy(recent, device.name) for device in overview.devices},
        taken={
            tenant.name: taken.get(tenant.name, 0.0) / whole if whole else None for tenant in overview.tenants
        },
        due={tenant.name: tenant.weight / weights if tenant.active else None for tenant in overview.tenants},
        fairness=sum(indices) / len(indices) if indices else None,
        least=min(indices, default=None),
        lines={
            "fairness": _line(overview.windows, [w.fairness for w in overview.windows]),
            **{
                f"{device.name} busy": _line(
                    overview.windows, [w.busy.get(device.name) for w in overview.windows]
                )
                for device in overview.devices
            },
        },
        width=_WIDTH,
        height=_HEIGHT,
    )


def _share_busy(windows: Sequence[Window], device: str) -> float | None:
    seconds = sum(window.seconds for window in windows)
    return sum(w.busy.get(device, 0.0) * w.seconds for w in windows) / seconds if seconds else None


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            found[name] = found.get(name, 0.0) + value
    return found


def _line(windows: Sequence[Window], shares: Sequence[float | None]) -> list[str]:
    """Return the points of lines over time, of shares from 0 to 1; a gap where there is none."""
    if not windows:
        return []
    begin = windows[0].end - windows[0].seconds
    scale = _WIDTH / max(windows[-1].end - begin, 1e-9)
    lines: list[list[str]] = [[]]
    for window, share in zip(windows, shares, strict=True):
        if share is None:
            lines.append([])
        else:
            lines[-1].append(f"{(window.end - begin) * scale:.1f},{_HEIGHT * (1 - share):.1f}")
    return [" ".join(line) for line in lines if line]


def _text(package: str | None, name: str) -> str:
    assert package is not None
    return (importlib.resources.files(package) / name).read_text(encoding="utf-8")
