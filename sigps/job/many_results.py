"""The results of several runs of one program on one graph.

results = sigps.run_many(SSSP, graph, source=[1, 5, 9])
results[1]["distance"]      # the run from 5: a NumPy array, aligned with results.ids
results["distance"]         # [runs, num_vertices]
results[1].supersteps, results.given[1]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from sigps.engine.stats import StatsLog
from sigps.errors import ConfigError, nearest
from sigps.extras import needs
from sigps.job.result import Result
from sigps.job.table_file import check_output, write_table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["REDUCTIONS", "Reduction", "Results", "reduced"]

Reduction = Literal["sum", "min", "max"]

REDUCTIONS: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}
"""What `reduce=` knows."""

_SUMS: dict[str, Any] = {"b": np.int64, "i": np.int64, "u": np.uint64}
"""What whole numbers add up in, by their kinds."""


class Results(Sequence[Result]):
    """Results in the order of the runs; by a field's name, its values of all runs.

    Attributes:
        given: What each run was given that others were not: a dict a run.
        reduced: What `reduce=` made of fields, [num_vertices] each; then no run keeps fields.
        one_by_one: Why the runs went one after another; empty where several went side by side.
    """

    def __init__(
        self,
        results: Sequence[Result],
        given: Sequence[Mapping[str, Any]],
        *,
        name: str,
        reduced: Mapping[str, NDArray[Any]] | None = None,
        one_by_one: str = "",
    ) -> None:
        self._results, self._name = list(results), name
        self.given = [dict(values) for values in given]
        self.reduced = dict(reduced or {})
        self.one_by_one = one_by_one

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @overload
    def __getitem__(self, key: int) -> Result: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Result]: ...
    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    def __getitem__(self, key: Any) -> Any:
        """Return a run's result; by a field's name its values, [runs, num_vertices], aligned with `given` and `ids`.

        Raises:
            ConfigError: If the program has no such field, or the runs did not keep it.
        """
        if not isinstance(key, str):
            return self._results[key]
        if key in self.reduced:
            raise ConfigError(
                f"the runs did not keep {key!r}, which reduce= names: read results.reduced[{key!r}]"
            )
        if self.reduced:
            raise ConfigError(
                f"the runs did not keep {key!r}: with reduce= there is results.reduced, of {', '.join(self.reduced)}"
            )
        values = [result[key] for result in self._results]
        is_masked = isinstance(values[0], np.ma.MaskedArray)  # ids that may be None
        return np.ma.stack(values) if is_masked else np.stack(values)

    @property
    def ids(self) -> NDArray[Any]:
        """The user's ids, ascending: the same of all runs."""
        return self._results[0].ids

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that each run kept."""
        return self._results[0].fields

    @property
    def supersteps(self) -> list[int]:
        """The supersteps of each run."""
        return [result.supersteps for result in self._results]

    @property
    def device(self) -> str:
        """The device that ran them."""
        return self._results[0].device

    def __repr__(self) -> str:
        varied = ", ".join(self.given[0])
        how = f"one after another ({self.one_by_one})" if self.one_by_one else "side by side"
        runs = "1 run" if len(self) == 1 else f"{len(self):,} runs"
        return f"<Results: {runs} of {self._name} by {varied}; {how} on device {self.device}>"

    def as_one(
        self, fields: Mapping[str, NDArray[Any]], aggregators: Mapping[str, Any] | None = None
    ) -> Result:
        """Return one result for what all runs came to, with the supersteps of all.

        Args:
            fields: Its fields, [num_vertices] each, aligned with `ids`.
            aggregators: Numbers to go with them.

        Raises:
            ConfigError: If a field has not one value a vertex.

        >>> import sigps
        >>> graph = sigps.Graph.from_edges([0, 1], [1, 2])
        >>> found = sigps.run_many(sigps.apps.BFS, graph, source=[0, 1], reduce={"level": "max"})
        >>> found.as_one({"farthest": found.reduced["level"]})["farthest"].tolist()
        [0, 1, 2]
        """
        for name, values in fields.items():
            if np.shape(values)[:1] != self.ids.shape:
                raise ConfigError(f"field {name!r} has not one value for each of {len(self.ids)} vertices")
        stats = StatsLog()
        for result in self:
            stats.extend(result.stats)
        first = self._results[0]
        return Result(
            ids=first.ids,
            fields=dict(fields),
            reason=next((result.reason for result in self if result.reason != "converged"), "converged"),
            supersteps=len(stats),
            stats=stats,
            aggregators=aggregators or {},
            device=first.device,
            writers=first.writers,
        )

    def to_arrow(self, fields: Sequence[str] | None = None) -> pyarrow.Table:
        """Return a table of all runs: what each was given, the ids, then fields (all, or those named).

        With `reduce=` it has one row a vertex: the id, and what was made of the fields.
        """
        with needs("pyarrow"):
            import pyarrow

        from sigps.graph.formats.arrow_columns import arrow_array

        chosen = list(fields or self.reduced or self.fields)
        if self.reduced:
            columns = {"id": self.ids} | {name: self._of_reduced(name) for name in chosen}
        else:
            n, runs = len(self.ids), len(self)
            columns = {name: np.repeat(_column([g[name] for g in self.given]), n) for name in self.given[0]}
            columns |= {"id": np.tile(self.ids, runs)} | {name: self[name].ravel() for name in chosen}
        return pyarrow.table({name: arrow_array(values) for name, values in columns.items()})

    def write(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write the table of `to_arrow` in the format that the path's suffix names: `.parquet` or `.csv`.

        On several ranks rank 0 writes it.

        Raises:
            ConfigError: If it cannot be written there.
            OutputError: If the disk is full, or fails; an older file is left as it was.
        """
        check_output(path)
        table = self.to_arrow(fields)
        if (writers := self._results[0].writers) is not None:
            write_table(table, Path(path), Path(path).suffix, writers)

    def _of_reduced(self, name: str) -> NDArray[Any]:
        if name not in self.reduced:
            raise ConfigError(f"reduce= does not name {name!r}{nearest(name, self.reduced)}")
        return self.reduced[name]


def reduced(so_far: NDArray[Any] | None, values: NDArray[Any], how: str) -> NDArray[Any]:
    """Return what a field came to over the runs so far, with one more; sums of whole numbers have 64 bits."""
    if isinstance(values, np.ma.MaskedArray):
        raise ConfigError(f"reduce= cannot take the {how} of ids that may be None: leave the field out")
    if so_far is None:
        return values.astype(_SUMS.get(values.dtype.kind, values.dtype) if how == "sum" else values.dtype)
    found: NDArray[Any] = REDUCTIONS[how](so_far, values, out=so_far)
    return found


def _column(values: list[Any]) -> NDArray[Any]:
    return np.array(values, dtype=object if None in values else None)
