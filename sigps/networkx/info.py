"""What NetworkX reads of the backend when it is imported itself; so this module imports nothing heavy."""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULTS", "backend_info"]

DEFAULTS: dict[str, Any] = {"device": "auto", "min_edges": 100_000}
"""`networkx.config.backends.sigps`: the device of all runs, and from how many edges on graphs are converted unasked."""


def backend_info() -> dict[str, Any]:
    """Return the description of the backend, as NetworkX's entry point wants it."""
    return {
        "backend_name": "sigps",
        "project": "sigps",
        "package": "sigps",
        "short_summary": "Vertex programs on CPU cores and GPUs.",
        "default_config": DEFAULTS,
    }
