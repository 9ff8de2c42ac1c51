"""The values that a program keeps on edges, by the user's ids.

    result.edges["bound"]           # a NumPy array, aligned with result.edges.sources and result.edges.targets
    result.edges.write("bounds.parquet")

A program that declares no `EdgeState` has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.job.table_file import check_output, needs, write_table

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["EdgeFields"]


class EdgeFields:
    """The values kept on edges, in ascending order of the edges' ends.

    An undirected edge is there once, with the values that its end with the smaller id keeps. A program
    with `both_ways=True` gives each edge once for each of its ends.

    Attributes:
        sources: [num_edges] ids of the vertices that keep the values.
        targets: [num_edges] ids of the other ends.
        fields: The names of the program's edge states.
    """

    def __init__(
        self,
        sources: NDArray[Any],
        targets: NDArray[Any],
        values: Mapping[str, NDArray[Any]],
        *,
        group_rank: int = 0,
        group_size: int = 1,
    ) -> None:
        self.sources, self.targets = sources, targets
        self._values = dict(values)
        self._group_rank, self._group_size = group_rank, group_size

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._values)

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """Return the values of an edge state, aligned with `sources` and `targets`.

        Raises:
            ConfigError: If the program keeps nothing of that name on edges.
        """
        if field not in self._values:
            raise ConfigError(f"nothing is kept on edges as {field!r}; there is: {', '.join(self.fields)}")
        return self._values[field]

    def __repr__(self) -> str:
        return f"<EdgeFields: {', '.join(self.fields)} of {len(self):,} edges>"

    def to_arrow(self) -> pyarrow.Table:
        """Return a table: columns `source` and `target`, then the fields."""
        with needs("pyarrow"):
            import pyarrow

        return pyarrow.table({name: pyarrow.array(values) for name, values in self._columns().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame: columns `source` and `target`, then the fields."""
        with needs("pandas"):
            import pandas

        return pandas.DataFrame(self._columns())

    def write(self, path: str | Path) -> None:
        """Write in the format that the path's suffix names: `.parquet` or `.csv`; on several ranks a folder.

        Raises:
            ConfigError: If it cannot be written there; an older file is left as it was.
        """
        check_output(path, group_size=self._group_size)
        write_table(
            self.to_arrow(),
            Path(path),
            Path(path).suffix,
            group_rank=self._group_rank,
            group_size=self._group_size,
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {"source": self.sources, "target": self.targets, **self._values}
