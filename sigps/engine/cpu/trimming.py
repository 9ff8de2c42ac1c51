"""Which vertices lost what their key came from, when edges were deleted: they are given back their first states.

A vertex lost it where no in-edge from one with a smaller number makes its very key. Numbers are given when the first
edge is deleted, and to vertices that changed when the next one is (`kernels/cpu/live.py`); where messages only add to
keys, these are the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.engine import Engine
from sigps.engine.cpu.following import Arrays, EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.kernels.cpu.live import UNORDERED

__all__ = ["Trimming", "ascending"]


class Trimming(Engine):
    """An engine of a monotone program that takes back keys which nothing holds up any more."""

    _has_witnesses = False
    _first: tuple[Arrays, Arrays] | None = None  # states and last records of superstep 0
    _numbers: NDArray[np.uint64] | None = None
    _next_number = 0
    _keys_are_numbers = False
    _least = 0.0  # of the column that messages add
    _renewed: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)  # those that have other witnesses

    def _trim(self, lost: NDArray[np.uint32], spending: Spending) -> NDArray[np.uint32] | None:
        """Give back the states of superstep 0 to vertices that deleted edges held up; return these.

        None where that costs more than may be spent.
        """
        state, kept = self._state, self._records.kept
        assert kept is not None
        assert self._first is not None
        order = self._ordered(spending)
        if order is None:
            return None
        n = state.subgraph.num_owned
        queue, waiting = np.empty(n + 1, dtype=np.uint32), np.zeros(n, dtype=np.uint8)
        queue[: lost.size] = lost
        waiting[lost] = 1
        trimmed = np.empty(n, dtype=np.uint32)
        renewed = np.empty(n, dtype=np.uint32)
        count, num_renewed, read = state.loop("trim_unsupported")(
            queue, lost.size, waiting, state.arguments(), state.pull_edges, state.push_edges, state.owned,
            state.fields, kept.records, state.native.empty, *self._first, order, trimmed, renewed, self._has_witnesses,
            spending.left_edges,
        )  # fmt: skip
        if not spending.take(edges=int(read)):
            return None
        self._renewed = renewed[:num_renewed].copy() if num_renewed <= n else np.arange(n, dtype=np.uint32)
        return trimmed[:count].copy()

    def _ordered(self, spending: Spending) -> NDArray[np.uint64] | None:
        """Return the numbers of vertices, those that changed since they were given numbered anew.

        None where that costs more than may be spent.
        """
        if self._numbers is None:
            self._numbers = np.full(self._state.subgraph.num_owned, UNORDERED)
            self._next_number, self._keys_are_numbers = 0, self._adds_to_keys
        listed = np.flatnonzero(self._numbers == UNORDERED).astype(np.uint32)
        if self._keys_are_numbers and not self._sent_keys(listed):
            self._numbers.fill(UNORDERED)
            self._keys_are_numbers = False
            listed = np.arange(self._numbers.size, dtype=np.uint32)
        if self._keys_are_numbers:
            self._numbers[listed] = ascending(self._state.fields.states[self._key_index][listed])
            return self._numbers
        return self._numbered(self._numbers, listed, spending)

    @property
    def _adds_to_keys(self) -> bool:
        """Whether a message is what its sender sent and a number of the edge that is not negative; less is better."""
        claim, (slot,) = self._state.native.program.monotone, self._state.native.program.slots
        assert claim is not None
        return slot.op == "min" and claim.column is not None and self._least >= 0

    def _sent_keys(self, listed: NDArray[np.uint32]) -> bool:
        """Tell whether these vertices sent their keys last. Then none of them holds up one with a better key."""
        kept = self._records.kept
        assert kept is not None
        sent = kept.keys[listed]
        return bool(
            ((sent == self._state.fields.states[self._key_index][listed]) | (sent == kept.worst)).all()
        )

    def _numbered(
        self, order: NDArray[np.uint64], listed: NDArray[np.uint32], spending: Spending
    ) -> NDArray[np.uint64] | None:
        """Number these vertices, which are UNORDERED, and those that they alone hold up, behind all others."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        assert self._first is not None
        arrays = (
            state.arguments(),
            state.pull_edges,
            state.push_edges,
            state.owned,
            state.fields,
            kept.records,
            order,
        )
        number, is_anew = self._next_number, self._next_number == 0
        if not is_anew:
            queue = np.empty(order.size, dtype=np.uint32)
            queue[: listed.size] = listed
            size, read = state.loop("unorder_dependent")(queue, listed.size, *arrays, spending.left_edges)
            if not spending.take(edges=int(read)):
                return None
            listed = queue[:size]
        at = self._key_index
        is_root = state.fields.states[at][listed] == self._first[0][at][listed]
        queue, tail = np.empty(listed.size, dtype=np.uint32), 0
        roots, listed = listed[is_root], listed[~is_root]
        if is_anew:  # what roots hold up is found from them, and all others from that
            queue[: roots.size], tail, listed = roots, roots.size, listed[:0]
        else:
            order[roots] = number + np.arange(roots.size, dtype=np.uint64)
            number += roots.size
        next_number, read = state.loop("order_listed")(
            listed, queue, tail, np.uint64(number), *arrays, spending.left_edges
        )
        self._next_number = int(next_number)
        return order if spending.take(edges=int(read)) else None

    @property
    def _key_index(self) -> int:
        """Which state is the key."""
        claim = self._state.native.program.monotone
        assert claim is not None
        return claim.current

    def _columns_of(self, edges: EdgeChanges) -> Arrays:
        names = self._state.program.edge_columns
        return tuple(edges.columns[n] if n in edges.columns else np.ones(edges.sources.size) for n in names)

    def _found(self, name: str, edges: EdgeChanges) -> NDArray[np.uint32]:
        """Return the targets that a loop lists of some edges."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        found = np.empty(edges.sources.size, dtype=np.uint32)
        ends = edges.sources.astype(np.uint32), edges.targets.astype(np.uint32)
        columns = self._columns_of(edges)
        count = state.loop(name)(
            *ends, columns, state.arguments(), state.owned, state.fields, kept.records, found
        )
        return found[:count]

    def _note_least(self, columns: Arrays) -> None:
        claim = self._state.native.program.monotone
        assert claim is not None
        if claim.column is not None and columns[claim.column].size:
            self._least = min(self._least, float(columns[claim.column].min()))


def ascending(keys: NDArray[Any]) -> NDArray[np.uint64]:
    """Return numbers in the order of floats that are not NaN; none is UNORDERED."""
    values = keys.astype(np.float64) + 0.0  # -0.0 is 0.0
    bits = values.view(np.uint64)
    return np.where(values < 0, ~bits, bits | np.uint64(1 << 63))
