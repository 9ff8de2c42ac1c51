"""Ranks as threads of one process: a fake of `sigps.group.Group`.

Arrays are copied and values packed on the way, as between processes, so that a test fails where ranks share memory, or
send what MPI ranks could not.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgpack
import numpy as np
from numpy.typing import NDArray

from sigps.group.status import Status

T = TypeVar("T")


class ThreadGroup:
    """One rank; all ranks of a group share one `SharedValues`."""

    def __init__(self, rank: int, shared: SharedValues) -> None:
        self.rank = rank
        self.size = shared.size
        self.status = Status.create()
        self._shared = shared

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        assert len(parts) == self.size
        assert len({part.dtype for part in parts}) == 1, "all parts need one dtype"
        rows = self._shared.exchange(self.rank, "all_to_all", [parts[0].dtype.str, list(parts)])
        assert len({dtype for dtype, _ in rows}) == 1, f"ranks sent different dtypes: {rows}"
        return [parts[self.rank].copy() for _, parts in rows]

    def all_reduce(self, values: NDArray[Any], op: str) -> NDArray[Any]:
        assert values.dtype.kind in "iuf", f"MPI reduces no {values.dtype}"
        rows = self._shared.exchange(self.rank, f"all_reduce {op}", values)
        assert len({(row.dtype, row.shape) for row in rows}) == 1
        reduced = {"sum": np.sum, "min": np.min, "max": np.max}[op](np.stack(rows), axis=0)
        return np.asarray(reduced, dtype=values.dtype)

    def all_gather(self, value: T) -> list[T]:
        rows = self._shared.exchange(self.rank, "all_gather", msgpack.packb(value))
        return [msgpack.unpackb(row, strict_map_key=False) for row in rows]

    def all_gather_array(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        assert values.ndim == 1, "MPI returns arrays of one dimension"
        rows = self._shared.exchange(self.rank, "all_gather_array", values)
        assert len({row.dtype for row in rows}) == 1, "ranks sent different dtypes"
        return [row.copy() for row in rows]

    def broadcast(self, value: T) -> T:
        packed = self._shared.exchange(self.rank, "broadcast", msgpack.packb(value))[0]
        first: T = msgpack.unpackb(packed, strict_map_key=False)
        return first

    def barrier(self) -> None:
        self._shared.exchange(self.rank, "barrier", None)


class SharedValues:
    """One value of each rank of a collective, written by that rank and read by all between two barriers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: list[Any] = [None] * size
        self._barrier = threading.Barrier(size, timeout=300)

    def exchange(self, rank: int, verb: str, value: Any) -> list[Any]:
        self._values[rank] = (verb, copy.deepcopy(value))  # a sender may go on and change what it sent
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        verbs = {value[0] for value in values}
        assert len(verbs) == 1, f"ranks called different collectives: {sorted(verbs)}"
        return [value[1] for value in values]

    def abort(self) -> None:
        self._barrier.abort()


def run_ranks(size: int, function: Callable[[ThreadGroup], T]) -> list[T]:
    """Run `function(group)` on `size` threads and return the results by rank; the first error is raised."""
    shared = SharedValues(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = function(ThreadGroup(rank, shared))
        except BaseException as error:
            errors.append(error)
            shared.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    causes = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (causes or errors)[0]
    return results
