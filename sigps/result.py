"""What a run gives back: the fields of every vertex by the user's ids, and the account of its supersteps.

    result = sigps.run(PageRank(), graph)
    result["rank"]            # a NumPy array, aligned with result.ids
    result.top("rank", 10)    # [(id, rank), ...]
    result.write_parquet("ranks.parquet")

Writing goes to a temporary name that is renamed when complete, so an older result is never half replaced.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.engine.stats import SaveStats, StatsLog, SuperstepStats
from sigps.errors import ConfigError

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["FORMATS", "Result", "check_output", "highest"]

Reason = Literal["converged", "max_supersteps", "stopped"]
FORMATS = (".parquet", ".csv")


class Result:
    """The fields of this rank's vertices, or of all, when the run ended.

    Attributes:
        ids: The user's ids, ascending.
        fields: The names of the program's fields.
        reason: Why the run ended: "converged" (nothing active, nothing in flight), "stopped" (by the program's
            `master()`), or "max_supersteps".
        supersteps: Supersteps that ran.
        stats: One record a superstep: `result.stats[3].messages`.
        aggregators: Each aggregator's final value.
        device: What ran it: "python", "cpu" or "cuda".
        trace: What `trace=` recorded, or None.
        saves: One record a state log that was written on the way.
        group_rank: This rank.
        group_size: Ranks that each write their part; 1 where rank 0 holds all vertices and writes alone.
        num_vertices: Vertices in this result.
    """

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
        group_rank: int = 0,
        group_size: int = 1,
    ) -> None:
        self.ids = ids
        self._fields = fields
        self.reason = reason
        self.supersteps = supersteps
        self.stats = StatsLog(stats)
        self.aggregators = dict(aggregators)
        self.device = device
        self.trace = trace
        self.saves = tuple(saves)
        self.group_rank = group_rank
        self.group_size = group_size

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._fields)

    @property
    def num_vertices(self) -> int:
        return len(self.ids)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """Return a field's values, aligned with `ids`.

        Raises:
            ConfigError: If the program has no such field.
        """
        if field not in self._fields:
            close = difflib.get_close_matches(str(field), self.fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ConfigError(f"the result has no field {field!r}{hint} It has: {', '.join(self.fields)}")
        return self._fields[field]

    def __contains__(self, field: object) -> bool:
        return field in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __repr__(self) -> str:
        return f"<Result: {', '.join(self.fields)} of {self.num_vertices:,} vertices; {self.summary()}>"

    def summary(self) -> str:
        """Say in one line why the run ended, after how much work."""
        why = {
            "converged": "converged: no vertex is active and no message is in flight",
            "stopped": "stopped by the program's master()",
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
        """
        values = self[field]
        if 0 < k < len(values) and values.dtype != object:  # string ids stand in no array of numbers
            bound = np.partition(_sortable(values), len(values) - k)[len(values) - k]
            chosen = np.flatnonzero(_sortable(values) >= bound)
        else:
            chosen = np.arange(len(values))
        pairs = zip(self.ids[chosen].tolist(), values[chosen].tolist(), strict=True)
        return highest(pairs, k)

    def to_cupy(self, field: str) -> Any:
        """Return a field as a CuPy array; of a run on a GPU, without a copy to the host.

        Args:
            field: The field's name. Its type may be narrower than NumPy's copy has it: ids that fit take 32 bits.

        Raises:
            ConfigError: If the program has no such field, or it holds strings.
        """
        import cupy

        on_device = getattr(self._fields, "on_device", None)
        if field in self._fields and on_device is not None:
            return on_device(field)
        values = self[field]
        if values.dtype.kind not in "biuf":
            raise ConfigError(
                f"field {field!r} names vertices by strings, which no GPU array holds; use result[{field!r}]"
            )
        return cupy.asarray(values)

    def to_arrow(self, fields: Sequence[str] | None = None) -> pyarrow.Table:
        """Return a table: column `id`, then the fields (all, or those named)."""
        with _needs("pyarrow"):
            import pyarrow

        columns = {"id": self.ids} | {name: self[name] for name in (fields or self.fields)}
        return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})

    def to_pandas(self, fields: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return a data frame: column `id`, then the fields (all, or those named)."""
        with _needs("pandas"):
            import pandas

        return pandas.DataFrame({"id": self.ids} | {name: self[name] for name in (fields or self.fields)})

    def write_parquet(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write one Parquet file; on several ranks a folder, in which each rank writes its part.

        Raises:
            ConfigError: If it cannot be written there; an older result is left as it was.
        """
        with _needs("pyarrow"):
            import pyarrow.parquet

        table = self.to_arrow(fields)
        self._write(path, ".parquet", lambda file: pyarrow.parquet.write_table(table, file))

    def write_csv(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write one CSV file with a header; on several ranks a folder, in which each rank writes its part.

        Raises:
            ConfigError: If it cannot be written there; an older result is left as it was.
        """
        with _needs("pyarrow"):
            import pyarrow.csv

        table = self.to_arrow(fields)
        options = pyarrow.csv.WriteOptions(include_header=False)

        def write(file: Any) -> None:
            file.write((",".join(table.column_names) + "\n").encode())
            pyarrow.csv.write_csv(table, file, options)

        self._write(path, ".csv", write)

    def write(self, path: str | Path, fields: Sequence[str] | None = None) -> None:
        """Write in the format that the path's suffix names: `.parquet` or `.csv`."""
        check_output(path, group_size=self.group_size)
        {".parquet": self.write_parquet, ".csv": self.write_csv}[Path(path).suffix](path, fields)

    def _write(self, path: str | Path, suffix: str, write: Callable[[Any], None]) -> None:
        path = Path(path)
        if self.group_size == 1:
            if self.group_rank == 0:
                _replace(path, write)
            return
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot make the folder {path} for the parts: {error.strerror}") from None
        _replace(path / f"part-{self.group_rank:05}{suffix}", write)
        if self.group_rank == 0:
            for part in path.glob(f"part-*{suffix}"):  # an earlier run had more ranks
                if int(part.stem.removeprefix("part-")) >= self.group_size:
                    part.unlink()


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


def check_output(path: str | Path, *, group_size: int = 1) -> None:
    """Try whether a result can be written to a path, leaving nothing behind.

    Raises:
        ConfigError: If the format is unknown, the folder is missing or not writable, or a file stands where
            a folder must come (or a folder where a file must).
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ConfigError(
            f"output {path}: the name ends in {path.suffix!r}; a result is written as {' or '.join(FORMATS)}"
        )
    with _needs("pyarrow"):
        import pyarrow  # noqa: F401
    if not path.parent.is_dir():
        raise ConfigError(f"output {path}: there is no folder {path.parent}: make it, or choose another path")
    if group_size == 1 and path.is_dir():
        raise ConfigError(
            f"output {path}: is a folder, and one rank writes a file: remove it, or choose another path"
        )
    if group_size > 1 and path.is_file():
        raise ConfigError(
            f"output {path}: is a file, and {group_size} ranks write a folder: "
            "remove it, or choose another path"
        )
    folder = path if path.is_dir() else path.parent
    probe = folder / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"output {path}: cannot write in the folder {folder}: {error.strerror}") from None


def _replace(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file under a temporary name beside it, then rename it over the old one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _sortable(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values with NaN as the lowest."""
    return np.where(np.isnan(values), -np.inf, values) if values.dtype.kind == "f" else values


@contextlib.contextmanager
def _needs(package: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"this needs {package}, which is not installed ({error}): pip install 'sigps[io]'"
        ) from None
