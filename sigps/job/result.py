"""The result of a run: the fields of every vertex by the user's ids, and the statistics of its supersteps.

    result = sigps.run(PageRank(), graph)
    result["rank"]            # a NumPy array, aligned with result.ids; of vectors [num_vertices, length]
    result.top("rank", 10)    # [(id, rank), ...]
    result.write_parquet("ranks.parquet")

On several ranks a result holds all vertices, or those of its rank.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.account import Line
from sigps.engine.stats import SaveStats, StatsLog, SuperstepStats
from sigps.errors import ConfigError, nearest
from sigps.extras import needs
from sigps.graph.formats import edge_table
from sigps.graph.graph import Graph
from sigps.group import Alone, Group, together
from sigps.model.fields import NO_VERTEX
from sigps.report.record import RunRecord

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars
    import pyarrow

    from sigps.report.page import Report

__all__ = ["EdgeFields", "Result", "highest", "highest_of", "highest_of_ranks"]

_ALONE = Alone()

Reason = Literal["converged", "max_supersteps", "stopped"]


class _Table:
    """Arrays by name beside the ids of what they belong to.

    Attributes:
        fields: The names of the arrays, without the ids.
        writers: The ranks that write it together, each its part: one alone where rank 0 holds all, and then none on the
            others.
    """

    _ids: ClassVar[dict[str, str]]  # the columns of ids and the attributes that hold them

    def __init__(
        self, fields: Mapping[str, NDArray[Any]], optional: frozenset[str], writers: Group | None
    ) -> None:
        self._fields, self._optional = fields, optional
        self.writers = writers

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._fields)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __getitem__(self, field: str) -> NDArray[Any]:
        values = self._fields[field]
        if field not in self._optional:
            return values
        known = getattr(
            self._fields, "none_of", None
        )  # of fields that a device holds it was found while they crossed
        return np.ma.MaskedArray(values, np.asarray(values == NO_VERTEX) if known is None else known(field))

    def to_arrow(self, fields: Sequence[str] | None = None) -> pyarrow.Table:
        """Return a table: the ids, then the fields (all, or those named)."""
        with needs("pyarrow"):
            import pyarrow

        from sigps.graph.formats.arrow_columns import arrow_array

        columns = self._columns(fields)
        return pyarrow.table({name: arrow_array(values) for name, values in columns.items()})

    def to_pandas(self, fields: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return a data frame: the ids, then the fields (all, or those named)."""
        with needs("pandas"):
            import pandas

        columns: dict[str, Any] = dict(self._columns(fields))
        for name, values in columns.items():
            if isinstance(values, np.ma.MaskedArray):
                columns[name] = pandas.arrays.IntegerArray(values.data, np.ma.getmaskarray(values))
            elif values.ndim > 1:
                columns[name] = list(values)
        return pandas.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table for what reads Arrow streams, such as `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_polars(self, fields: Sequence[str] | None = None) -> polars.DataFrame:
        """Return a polars data frame: the ids, then the fields (all, or those named)."""
        with needs("polars", "polars"):
            import polars

        return polars.DataFrame(self.to_arrow(fields))

    def write(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write in the format that the path's suffix names: `.parquet` or `.csv`.

        Where each rank has its part they write a folder together: collective, `sigps.read_result` reads it. A result at
        that path is replaced when the new one is whole.

        Raises:
            ConfigError: If it cannot be written there.
            OutputError: If the disk is full, or fails; an older result is left as it was.
        """
        from sigps.job.table_file import check_output

        if (group := self.writers) is not None:
            together(lambda: check_output(path, group_size=group.size), group)
            self._write(path, fields, Path(path).suffix)

    def _write(self, path: str | Path, fields: Sequence[str] | None, suffix: str) -> None:
        from sigps.job.table_file import write_table

        if self.writers is not None:
            write_table(self.to_arrow(fields), Path(path), suffix, self.writers)

    def _columns(self, fields: Sequence[str] | None) -> dict[str, NDArray[Any]]:
        ids = {name: getattr(self, attribute) for name, attribute in self._ids.items()}
        return ids | {name: self[name] for name in (fields or self.fields)}


class EdgeFields(_Table):
    """The values kept on edges, in ascending order of the edges' ends, which are the ids `source` and `target`.

        result.edges["bound"]    # a NumPy array, aligned with result.edges.sources and result.edges.targets

    An undirected edge is there once, with the values that its end with the smaller id keeps. A program
    with `both_ways=True` gives each edge once for each of its ends.

    Attributes:
        sources: [num_edges] ids of the vertices that keep the values.
        targets: [num_edges] ids of the other ends.
    """

    _ids = {"source": "sources", "target": "targets"}

    def __init__(
        self,
        sources: NDArray[Any],
        targets: NDArray[Any],
        values: Mapping[str, NDArray[Any]],
        *,
        optional: frozenset[str] = frozenset(),
        writers: Group | None = _ALONE,
    ) -> None:
        super().__init__(values, optional, writers)
        self.sources, self.targets = sources, targets

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """Return the values of an edge state, aligned with `sources` and `targets`.

        Raises:
            ConfigError: If the program keeps nothing of that name on edges.
        """
        if field not in self._fields:
            raise ConfigError(f"nothing is kept on edges as {field!r}; there is: {', '.join(self.fields)}")
        return super().__getitem__(field)

    def __repr__(self) -> str:
        return f"<EdgeFields: {', '.join(self.fields)} of {len(self):,} edges>"


class Result(_Table):
    """The fields of this rank's vertices, or of all, when the run ended.

    Attributes:
        ids: The user's ids, ascending; the column `id` of tables.
        reason: Why the run ended: "converged" (nothing active, nothing in flight), "stopped" (by the program's
            `master()` or `next_phase()`), or "max_supersteps".
        supersteps: Supersteps that ran.
        stats: One record a superstep: `result.stats[3].messages`.
        aggregators: Each aggregator's final value; of vectors an array.
        account: Where the time of `sigps.run` went on this rank: seconds by line (`sigps.account.LINES`), which add up
            to the wall clock. Fields that a GPU holds cross when they are first read, which is not in it.
        device: The device that ran it: "python", "cpu" or "cuda".
        trace: What `trace=` recorded, or None.
        saves: One record a state log that was written on the way.
        edges: The values that the program keeps on edges.
        num_vertices: Vertices in this result.
        record: How the run was asked for and went, for `report()`; None of results that `sigps.run` did not make.
    """

    _ids = {"id": "ids"}
    record: RunRecord | None = None

    def __init__(
        self,
        *,
        ids: NDArray[Any],
        fields: Mapping[str, NDArray[Any]],
        reason: Reason,
        supersteps: int,
        stats: Sequence[SuperstepStats],
        aggregators: Mapping[str, Any],
        device: str,
        trace: list[Any] | None = None,
        saves: Sequence[SaveStats] = (),
        edges: Callable[[], EdgeFields] | None = None,
        optional: frozenset[str] = frozenset(),
        writers: Group | None = _ALONE,
        account: Mapping[Line, float] | None = None,
    ) -> None:
        super().__init__(fields, optional, writers)
        self.ids = ids
        self.reason = reason
        self.supersteps = supersteps
        self.stats = StatsLog(stats)
        self.aggregators = {
            name: np.array(value) if isinstance(value, list) else value for name, value in aggregators.items()
        }
        self.device = device
        self.trace = trace
        self.account: Mapping[Line, float] = account or {}
        self.saves = tuple(saves)
        self._make_edges = edges
        self._edges: EdgeFields | None = None

    @property
    def edges(self) -> EdgeFields:
        """The values that the program keeps on edges: of all, or with `gather=False` of this rank's vertices.

        They are made when first read; until then the values of the run are kept, where they were.

        Raises:
            ConfigError: If it keeps none there.
        """
        if self._make_edges is None:
            raise ConfigError("the program keeps nothing on edges: it declares no EdgeState")
        if self._edges is None:
            self._edges = self._make_edges()
        return self._edges

    @property
    def num_vertices(self) -> int:
        return len(self.ids)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """Return a field's values, aligned with `ids`; of a state that is a NamedTuple an array of structures.

        A field of `VertexId | None` is a masked array, whose masked values are None (`tolist()` says so); where ids are
        strings, it is an array of objects.

        Raises:
            ConfigError: If the program has no such field.
        """
        if field not in self._fields and any(name.startswith(f"{field}.") for name in self._fields):
            return _structures({n: self[n] for n in self._fields if n.startswith(f"{field}.")}, field)
        if field not in self._fields:
            raise ConfigError(
                f"the result has no field {field!r}{nearest(field, self.fields)} It has: {', '.join(self.fields)}"
            )
        return super().__getitem__(field)

    def __contains__(self, field: object) -> bool:
        return field in self._fields

    def __repr__(self) -> str:
        return f"<Result: {', '.join(self.fields)} of {self.num_vertices:,} vertices; {self.summary()}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: how the run ended, and the vertices with the highest values of a field."""
        from sigps.graph.card import card, head_table

        ordered = [name for name in self.fields if self[name].ndim == 1]
        rows = {"run": repr(self.record.program)} if self.record is not None else {}
        rows |= {
            "ended": self.summary(),
            "fields": f"{', '.join(self.fields)} of {self.num_vertices:,} vertices",
        }
        for name, value in self.aggregators.items():
            rows[name] = f"{value:.6g}" if isinstance(value, float) else str(value)
        tables = [head_table(("id", f"highest {ordered[0]}"), self.top(ordered[0], 5))] if ordered else []
        return card("Result", rows, *tables)

    def without_fields(self) -> Result:
        """Return the same without its fields, which take memory."""
        bare = copy.copy(self)
        bare._fields = {}
        return bare

    def summary(self) -> str:
        """Say in one line why the run ended, after how much work."""
        why = {
            "converged": "converged: no vertex is active and no message is in flight",
            "stopped": "stopped by the program",
            "max_supersteps": "stopped at max_supersteps",
        }[self.reason]
        seconds = sum(s.seconds for s in self.stats)
        messages = sum(s.messages for s in self.stats)
        supersteps = "1 superstep" if self.supersteps == 1 else f"{self.supersteps:,} supersteps"
        work = f"{messages:,} messages, {seconds:.3g} s"
        if self.saves:
            waited = sum(s.seconds for s in self.saves)
            work += f", {waited:.2g} s more for {len(self.saves)} state log{'s' * (len(self.saves) > 1)}"
        return f"{why}, after {supersteps} ({work}) on device {self.device}"

    def top(self, field: str, k: int = 10) -> list[tuple[Any, Any]]:
        """Return the k highest values with their ids, highest first, ties by smaller id; NaN comes last.

        O(n + k log k) where ties are few. On several ranks: of this rank's part.

        Raises:
            ConfigError: If the program has no such field, or it holds vectors.
        """
        values = self[field]
        if values.ndim > 1:
            raise ConfigError(
                f"field {field!r} holds vectors of {values.shape[1]}, which have no order: use result[{field!r}][:, k]"
            )
        return highest_of(self.ids, values, k, is_optional=field in self._optional)

    def to_networkx(self, graph: Graph | None = None) -> networkx.Graph[Any]:
        """Return the graph of the run as a NetworkX graph, whose nodes have the fields. One process only.

        Args:
            graph: The graph; None for that of the run, which is there as long as somebody holds it.

        Raises:
            ConfigError: If that graph is gone, or one was given that has other vertices.
            GraphError: On several ranks, because no rank holds all edges.
        """
        found = graph if graph is not None or self.record is None else self.record.graph()
        if found is None:
            raise ConfigError("the graph of this result is gone: give it, result.to_networkx(graph)")
        if found.num_vertices != self.num_vertices and found.group.size == 1:
            raise ConfigError(
                f"that graph has {found.num_vertices:,} vertices, and this result {self.num_vertices:,}"
            )
        return edge_table.to_networkx(found, {name: self[name] for name in self.fields})

    def report(self, top: int = 10) -> Report:
        """Return a page about the run: why it ended, where its time went, its supersteps, what was derived, and more.

        A notebook shows it; `report.save("run.html")` writes one file that needs no network. Making it takes O(edges),
        for the degrees. On several ranks `sigps run --report` makes it, with the degrees of the whole graph; here they
        are left out, and the highest values are those of this rank's part.

        Args:
            top: How many of the highest values of each field are shown.

        Raises:
            ConfigError: If a package of the extra `report` is missing, this result is not of one `sigps.run`, or `top`
                is no number, such as a path.
        """
        from sigps.report.figures import degrees_of
        from sigps.report.page import make_report

        if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 0:
            raise ConfigError(
                f"report(top={top!r}): top is how many of the highest values are shown, a whole number; "
                'report().save("run.html") writes the page to a file'
            )

        record = self._recorded("report()")
        graph = record.graph()
        degrees = degrees_of(graph) if graph is not None and graph.group.size == 1 else None
        return make_report(self, record, highest=self._highest(top), degrees=degrees)

    def write_timeline(self, path: str | Path) -> None:
        """Write when what went on in the run, in the trace event format: Perfetto (ui.perfetto.dev) opens it.

        On several ranks with this rank's account; `sigps run --timeline` writes that of all.

        Raises:
            ConfigError: If this result is not of one `sigps.run`.
            OutputError: If it cannot be written there.
        """
        from sigps.report.timeline import own_spans, timeline, write_timeline

        record = self._recorded("write_timeline()")
        own = own_spans(platform.node(), record.spans)
        write_timeline(path, timeline([own], self.stats, record.leases))

    def _recorded(self, what: str) -> RunRecord:
        if self.record is None:
            raise ConfigError(
                f"{what} is of a result that sigps.run returned: of one run, not of many, in this process"
            )
        return self.record

    def _highest(self, k: int) -> dict[str, list[tuple[Any, Any]]]:
        """Return the k highest of each field whose values have an order."""
        return {name: self.top(name, k) for name in self.fields if self[name].ndim == 1}

    def to_cupy(self, field: str) -> Any:
        """Return a field as a CuPy array; of a run on a GPU, without a copy to the host.

        A field that had to leave the GPU, because a later run had no room, is sent there again.

        Args:
            field: The field's name. Its type may be narrower than NumPy's copy has it: ids that fit take 32 bits.
                What is None in a `VertexId | None` is the smallest number of that type.

        Raises:
            ConfigError: If the program has no such field, or it holds strings.
        """
        import cupy

        on_device = getattr(self._fields, "on_device", None)
        if field in self._fields and on_device is not None:
            return on_device(field)
        values = self[field] if field not in self._fields else self._fields[field]
        if values.dtype.kind not in "biuf":
            raise ConfigError(
                f"field {field!r} names vertices by strings, which no GPU array holds; use result[{field!r}]"
            )
        return cupy.asarray(values)

    def write_parquet(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write one Parquet file, or a folder, as `write` does.

        Raises:
            OutputError: If it cannot be written there; an older result is left as it was.
        """
        self._write(path, fields, ".parquet")

    def write_csv(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write one CSV file with a header, or a folder of them, as `write` does.

        Raises:
            OutputError: If it cannot be written there; an older result is left as it was.
        """
        self._write(path, fields, ".csv")


def _structures(parts: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return the parts of a state that is a NamedTuple as one array; `cluster.size` is its field `size`."""
    dtypes = [(n.removeprefix(f"{name}."), v.dtype, v.shape[1:]) for n, v in parts.items()]
    made = np.empty(len(next(iter(parts.values()))), dtype=np.dtype(dtypes))
    for n, values in parts.items():
        made[n.removeprefix(f"{name}.")] = values
    return made


def highest_of(
    ids: NDArray[Any], values: NDArray[Any], k: int, *, is_optional: bool = False
) -> list[tuple[Any, Any]]:
    """Return the k highest of values with their ids, as `highest` does; `is_optional` where some may be None."""
    chosen = np.arange(len(values))
    if 0 < k < len(values) and values.dtype != object and not is_optional:  # others cannot be partitioned
        bound = np.partition(_sortable(values), len(values) - k)[len(values) - k]
        chosen = np.flatnonzero(_sortable(values) >= bound)
    return highest(zip(ids[chosen].tolist(), values[chosen].tolist(), strict=True), k)


def highest_of_ranks(result: Result, field: str, k: int, group: Group) -> list[tuple[Any, Any]]:
    """Return the k highest values of a field of which each rank has its part. Collective."""
    pairs = [pair for part in group.all_gather(result.top(field, k)) for pair in part]
    return highest(pairs, k)


def highest(pairs: Any, k: int) -> list[tuple[Any, Any]]:
    """Return the k pairs (id, value) with the highest values, ties by smaller id; NaN and None come last.

    Example:
        >>> highest([(3, 1.0), (1, 2.0), (2, 1.0)], 2)
        [(1, 2.0), (2, 1.0)]
    """
    by_id = sorted(pairs, key=lambda pair: pair[0])
    known = [pair for pair in by_id if not _is_missing(pair[1])]
    known.sort(key=lambda pair: pair[1], reverse=True)  # stable: ties stay in the order of ids
    return (known + [pair for pair in by_id if _is_missing(pair[1])])[:k]


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _sortable(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values with NaN as the lowest."""
    return np.where(np.isnan(values), -np.inf, values) if values.dtype.kind == "f" else values
