"""State fields of a run that is over, in the memory of its GPU."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu
from sigps.device.transfers import bring, page_for
from sigps.engine.gpu.columns import write_cast, write_ids
from sigps.engine.gpu.graph import take_ids, take_rows

__all__ = ["DeviceFields"]


class DeviceFields(Mapping[str, NDArray[Any]]):
    """State fields that a run left on the device; each crosses to the host when it is first read.

    Args:
        gpu: The GPU.
        states: Each field's values by local id, and its type on the host.
        order: The local ids in the order of the fields, uint32, or a slice.
        optional: The fields in which the least number of their type stands for None.
    """

    def __init__(
        self,
        gpu: Gpu,
        states: Mapping[str, tuple[Any, np.dtype[Any]]],
        order: Any,
        optional: Container[str] = (),
    ) -> None:
        self._gpu, self._states, self._order, self._optional = gpu, states, order, optional
        self._brought: dict[str, NDArray[Any]] = {}
        self._none: dict[str, NDArray[np.bool_]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._brought:
            with spent_on("answer"):
                self._brought[name] = self._bring(name)
        return self._brought[name]

    def _bring(self, name: str) -> NDArray[Any]:
        """Bring a field, and where it is None. Ids get wider on the device where copy engines can write them as such.

        The host takes 2 ms to make 4 million numbers wide; twice the bytes take 0.3 to cross (NVIDIA H200).
        """
        kept, dtype = self._states[name][0], self._states[name][1].base
        shape = self._shape_of(kept)
        page, masks = page_for(shape, dtype), []
        if name in self._optional:
            masks = [page_for(shape, np.dtype(np.bool_))]
            self._none[name] = masks[0].array
        changes = bool(masks) or kept.dtype != dtype
        if changes and page.is_pinned and dtype == np.int64 and kept.dtype.kind == "i":
            with kept.device:
                rows, order = (kept[self._order], None) if self._is_slice else (kept, self._order)
                wide, is_none = take_ids(self._gpu, rows, order, finds_none=bool(masks))
            if masks:
                bring(is_none, np.dtype(np.bool_), page=masks[0])
            return bring(wide, dtype, page=page)
        write = write_ids if masks else write_cast if changes else np.copyto
        return bring(self.on_device(name), dtype, write, [mask.array for mask in masks], page)

    def _shape_of(self, kept: Any) -> tuple[int, ...]:
        rows = len(range(*self._order.indices(len(kept)))) if self._is_slice else self._order.size
        return rows, *kept.shape[1:]

    @property
    def _is_slice(self) -> bool:
        return isinstance(self._order, slice)

    def none_of(self, name: str) -> NDArray[np.bool_]:
        """Return where a field of those that are optional is None; found while it crosses."""
        self[name]
        return self._none[name]

    def again(self) -> DeviceFields:
        """Return the same fields, to cross once more: into arrays that may be changed without these being so."""
        return DeviceFields(self._gpu, self._states, self._order, self._optional)

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def on_device(self, name: str) -> Any:
        """Return a field as a CuPy array, of the type that the device keeps it in; nothing crosses to the host."""
        values = self._states[name][0]
        with values.device:
            return values[self._order] if self._is_slice else take_rows(self._gpu, values, self._order)
