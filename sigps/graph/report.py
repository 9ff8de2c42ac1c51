"""What loading a graph found: counts of the edges that were kept, dropped and skipped; and numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["LoadReport", "aligned", "bytes_text"]


@dataclass
class LoadReport:
    """Counts of one load, over all ranks.

    Loaders write `format`, `source`, `rows_skipped` and `notes`; `build_graph` writes the rest.

    Attributes:
        format: The format read, `"memory"` for arrays.
        source: The path read, empty for arrays.
        edges_given: Edges in the input, each counted once.
        edges_stored: Directed edges in the graph; an undirected edge counts twice, its self-loop once.
        duplicates: Given edges that repeat an earlier one; in an undirected graph also one in the other direction.
        duplicates_policy: What was done with them: `"keep"`, `"drop"`, `"sum"`, `"min"` or `"max"`.
        self_loops: Given edges from a vertex to itself.
        self_loops_policy: What was done with them: `"keep"` or `"drop"`.
        rows_skipped: Rows of the file that are no edges: comments, blank lines, headers.
        isolated: Vertices without an edge.
        base: The smallest id, None for string ids and graphs without vertices.
        id_map: The kind of the map from ids to 0..n-1: `"identity"`, `"range"`, `"table"` or `"strings"`.
        num_bytes: Bytes of the finished graph, over all ranks.
        seconds: Time from the first byte read to the finished graph, of the slowest rank.
        notes: Further remarks of the loader.
    """

    format: str = "memory"
    source: str = ""
    directed: bool = True
    num_vertices: int = 0
    edges_given: int = 0
    edges_stored: int = 0
    duplicates: int = 0
    duplicates_policy: str = "keep"
    self_loops: int = 0
    self_loops_policy: str = "keep"
    rows_skipped: int = 0
    isolated: int = 0
    base: int | None = None
    id_map: str = "identity"
    num_bytes: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = f"{self.source} " if self.source else ""
        direction = "directed" if self.directed else "undirected"
        base = "" if self.base is None else f", smallest id {self.base:,}"
        also = "" if self.directed or not self.duplicates else "; an edge in both directions is one"
        return "\n".join(
            [
                f"{where}({self.format}): {direction}, {self.num_vertices:,} vertices, "
                f"{self.edges_given:,} edges given, {self.edges_stored:,} stored",
                f"  duplicates {self.duplicates:,} ({_POLICIES[self.duplicates_policy]}{also}), "
                f"self-loops {self.self_loops:,} ({_POLICIES[self.self_loops_policy]}), "
                f"isolated vertices {self.isolated:,}, rows skipped {self.rows_skipped:,}",
                f"  id map {self.id_map}{base}; {bytes_text(self.num_bytes)} in {self.seconds:.2f} s",
                *(f"  {note}" for note in self.notes),
            ]
        )


_POLICIES = {"keep": "kept", "drop": "dropped", "sum": "summed", "min": "least kept", "max": "greatest kept"}


def bytes_text(num_bytes: float) -> str:
    """Say a number of bytes for people.

    Example:
        >>> bytes_text(5_000_000)
        '4.8 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if num_bytes < 1024 or unit == "TiB":
            break
        num_bytes /= 1024
    return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table of any width, its columns aligned right, but those in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
