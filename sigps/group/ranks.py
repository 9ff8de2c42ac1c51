"""The few collectives that loading and exchange need, and what is made of them.

`Group` is the contract, `Alone` is one process, `MPIGroup` is what `mpirun` started. Every method is
collective: all ranks call it in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgpack
import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.group.status import Status, Unwatched

__all__ = [
    "Alone",
    "Group",
    "MPIGroup",
    "own_range",
    "query_owners",
    "raise_together",
    "split_by_rank",
    "together",
]

T = TypeVar("T")
Reduction = Literal["sum", "min", "max"]


class Group(Protocol):
    """Ranks 0 to `size` - 1 of one run.

    Attributes:
        status: What this rank does, for those that watch it.
    """

    rank: int
    size: int
    status: Status

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Send `parts[r]` (1-D, one dtype on all ranks) to rank r; return what each rank sent here."""
        ...

    def all_reduce(self, values: NDArray[Any], op: Reduction) -> NDArray[Any]:
        """Combine arrays of one shape element by element; every rank gets the result."""
        ...

    def all_gather(self, value: T) -> list[T]:
        """Return every rank's small value (what msgpack carries), by rank."""
        ...

    def all_gather_array(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return every rank's 1-D array, by rank; lengths may differ, the dtype may not."""
        ...

    def broadcast(self, value: T) -> T:
        """Return rank 0's small value (what msgpack carries) on every rank."""
        ...

    def barrier(self) -> None:
        """Return when all ranks have called."""
        ...


class Alone:
    """A group of one process."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.status: Status = Unwatched.create()

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return list(parts)

    def all_reduce(self, values: NDArray[Any], op: Reduction) -> NDArray[Any]:
        return values

    def all_gather(self, value: T) -> list[T]:
        return [value]

    def all_gather_array(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        return [values]

    def broadcast(self, value: T) -> T:
        return value

    def barrier(self) -> None:
        return


_SLOT_BYTES = 1024
"""What each rank gives to one MPI call when all ranks gather a value: its length, and the value where it fits. A run on
ranks has some fifteen such collectives, and each superstep on CPU cores a few."""

_LENGTH_BYTES = 8

_NOTICE_SECONDS = 0.1
"""For others to learn of a failure, and the launcher of what was written, before an abort ends all."""


class MPIGroup:
    """The ranks of an MPI communicator. Data goes as raw bytes, small values as msgpack."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank = int(comm.Get_rank())
        self.size = int(comm.Get_size())
        self.status = Status.create()
        self._slot = np.zeros(_SLOT_BYTES, dtype=np.uint8)
        self._slots = np.zeros((self.size, _SLOT_BYTES), dtype=np.uint8)

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        sent = [np.ascontiguousarray(part) for part in parts]
        with self.status.waiting:
            return self._exchange(sent, np.dtype((sent[0].dtype, sent[0].shape[1:])))

    def _exchange(self, sent: list[NDArray[Any]], dtype: np.dtype[Any]) -> list[NDArray[Any]]:
        num_bytes = np.array([part.nbytes for part in sent], dtype=np.int64)
        num_arriving = np.empty(self.size, dtype=np.int64)
        self._comm.Alltoall(num_bytes, num_arriving)
        arrived = [np.empty(int(n) // dtype.itemsize, dtype=dtype) for n in num_arriving]
        # MPI's counts are 32 bit, so a large part is sent in several messages.
        requests = []
        for peer in range(self.size):
            if peer == self.rank:
                arrived[peer] = sent[peer]
                continue
            requests += [self._comm.Irecv(p, source=peer) for p in _pieces(arrived[peer])]
        for peer in range(self.size):
            if peer != self.rank:
                requests += [self._comm.Isend(p, dest=peer) for p in _pieces(sent[peer])]
        for request in requests:
            request.Wait()
        return arrived

    def all_reduce(self, values: NDArray[Any], op: Reduction) -> NDArray[Any]:
        from mpi4py import MPI

        result = np.empty_like(values)
        with self.status.waiting:
            self._comm.Allreduce(
                np.ascontiguousarray(values),
                result,
                op={"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}[op],
            )
        return result

    def all_gather(self, value: T) -> list[T]:
        packed = np.frombuffer(msgpack.packb(value), dtype=np.uint8)
        return [_unpack(part) for part in self.all_gather_array(packed)]

    def all_gather_array(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        values = np.ascontiguousarray(values)
        slot, slots = self._slot, self._slots
        slot[:_LENGTH_BYTES] = np.array([values.nbytes]).view(np.uint8)
        if values.nbytes <= _SLOT_BYTES - _LENGTH_BYTES:
            slot[_LENGTH_BYTES : _LENGTH_BYTES + values.nbytes] = values.reshape(-1).view(np.uint8)
        with self.status.waiting:
            self._comm.Allgather(slot, slots)
            lengths = slots[:, :_LENGTH_BYTES].copy().view(np.int64)[:, 0].tolist()
            if max(lengths) > _SLOT_BYTES - _LENGTH_BYTES:
                return self._exchange([values] * self.size, values.dtype)
        ends = [_LENGTH_BYTES + length for length in lengths]
        return [
            row[_LENGTH_BYTES:end].copy().view(values.dtype) for row, end in zip(slots, ends, strict=True)
        ]

    def broadcast(self, value: T) -> T:
        packed = np.frombuffer(msgpack.packb(value) if self.rank == 0 else b"", dtype=np.uint8)
        result: T = _unpack(self.all_gather_array(packed)[0])
        return result

    def barrier(self) -> None:
        with self.status.waiting:
            self._comm.Barrier()

    def abort(self, code: int = 1) -> None:
        """End every rank of the run at once with an exit code, after a failure that was reported. Does not return."""
        self.status.record_end(has_failed=True)
        time.sleep(_NOTICE_SECONDS)
        self._comm.Abort(code)


def together(work: Callable[[], T], group: Group) -> T:
    """Return `work()`, which must not be collective; where it fails on any rank, raise on all. Collective."""
    if group.size == 1:
        return work()
    error: Exception | None = None
    try:
        result = work()
    except Exception as raised:
        error = raised
    raise_together(error, group)  # raises unless there is a result
    return result


def raise_together(error: Exception | None, group: Group) -> None:
    """Raise this rank's error, or a `GraphError` that names another rank's. Collective.

    Raises:
        Exception: `error` itself on the ranks that have one.
        GraphError: On the others, if any rank has an error.
    """
    if group.size > 1:
        problems = group.all_gather("" if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    if group.size > 1:
        for rank, problem in enumerate(problems):
            if problem:
                raise GraphError(f"rank {rank} failed: {problem}")


def query_owners(
    group: Group,
    owners: NDArray[Any],
    keys: NDArray[Any],
    look_up: Callable[[NDArray[Any]], NDArray[Any]],
) -> NDArray[Any]:
    """Return what `look_up` gives for each key on the rank that owns it, in the order of `keys`. Collective.

    Args:
        group: The ranks.
        owners: [keys], the rank that owns each key.
        keys: [keys] of one dtype on all ranks.
        look_up: Returns one value for each key of an array; called on keys that this rank owns.
    """
    order, slices = split_by_rank(owners, group.size)
    received = group.all_to_all([keys[order[own]] for own in slices])
    values = group.all_to_all([look_up(part) for part in received])
    result = np.empty(keys.size, dtype=values[0].dtype)
    result[order] = np.concatenate(values)
    return result


def own_range(count: int, group: Group) -> range:
    """Return this rank's share of 0 .. count - 1: contiguous, in the order of ranks, equal up to one."""
    return range(count * group.rank // group.size, count * (group.rank + 1) // group.size)


def split_by_rank(owners: NDArray[Any], size: int) -> tuple[NDArray[np.int64], list[slice]]:
    """Return a stable order that sorts items by owner, [items], and each rank's slice of that order."""
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(size + 1)).tolist()
    return order, [slice(bounds[rank], bounds[rank + 1]) for rank in range(size)]


_PIECE_BYTES = 1 << 30


def _pieces(array: NDArray[Any]) -> list[NDArray[np.uint8]]:
    """Return the bytes of an array in one piece, as views."""
    raw = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, dtype=np.uint8)
    return [raw[i : i + _PIECE_BYTES] for i in range(0, raw.size, _PIECE_BYTES)]


def _unpack(packed: NDArray[Any]) -> Any:
    return msgpack.unpackb(packed.tobytes(), strict_map_key=False)
