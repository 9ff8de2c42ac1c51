"""Fields of results that are read from a live engine, as long as it has not gone on."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

__all__ = ["HeldFields", "LiveFields"]


class HeldFields:
    """The fields of the last result, which are kept before they change, if something holds it.

    Args:
        keep: What keeps fields as they are now where they are, on the device, or returns None; None: they are copied.
    """

    def __init__(self, keep: Callable[[], Mapping[str, NDArray[Any]] | None] | None = None) -> None:
        self._keep = keep
        self._held: weakref.ref[LiveFields] | None = None
        self._kept: weakref.ref[LiveFields] | None = None

    def add(self, fields: LiveFields) -> None:
        """Take note of the fields of a new result."""
        self._held = weakref.ref(fields)

    def detach(self) -> None:
        """Keep the fields of the last result, if something holds it, before they change.

        Where the engine keeps them, those of one result are there: most results are let go of after the next batch.
        """
        fields, older = _alive(self._held), _alive(self._kept)
        self._held = self._kept = None
        if older is not None:
            older.take()
        if fields is None or fields.is_taken:
            return
        kept = self._keep() if self._keep is not None else None
        if kept is None:
            fields.take()
        else:
            fields.read_from(kept)
            self._kept = weakref.ref(fields)

    def close(self) -> None:
        """Copy what results still read."""
        for fields in (_alive(self._kept), _alive(self._held)):
            if fields is not None:
                fields.take()
        self._held = self._kept = None


class LiveFields(Mapping[str, NDArray[Any]]):
    """The fields of a live engine: read there, and kept before it goes on if the result is still held."""

    def __init__(self, names: tuple[str, ...], read: Any, again: Any) -> None:
        self._names, self._read, self.again = names, read, again
        self._copies: dict[str, NDArray[Any]] = {}

    @property
    def is_taken(self) -> bool:
        """Whether all fields are here."""
        return len(self._copies) == len(self._names)

    def take(self) -> None:
        """Copy all fields."""
        for name in self._names:
            self[name]

    def read_from(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """Read what is not here yet from what the engine kept of it."""
        self._read = kept.__getitem__

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._copies:
            if name not in self._names:
                raise KeyError(name)
            self._copies[name] = self._read(name)
            if self.is_taken:
                self._read = None  # what was kept on a device is let go of
        return self._copies[name]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _alive(fields: weakref.ref[LiveFields] | None) -> LiveFields | None:
    return None if fields is None else fields()
