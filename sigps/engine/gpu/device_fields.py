"""State fields of a run that is over, in the memory of its GPU; on its host when another run needed the room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.answer_memory import Page
from sigps.device.cuda import Gpu, wait_for_device
from sigps.device.transfers import bring, page_for
from sigps.engine.gpu.columns import write_cast, write_ids
from sigps.engine.gpu.graph import take_ids, take_rows
from sigps.engine.gpu.resident import hold_on_gpu

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
        arrays = {name: values for name, (values, _) in states.items()}
        self._begin(_Held(gpu, arrays, order), {name: dtype for name, (_, dtype) in states.items()}, optional)

    def _begin(self, held: _Held, dtypes: Mapping[str, np.dtype[Any]], optional: Container[str]) -> None:
        self._held, self._dtypes, self._optional = held, dtypes, optional
        self._brought: dict[str, NDArray[Any]] = {}
        self._none: dict[str, NDArray[np.bool_]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._brought:
            with spent_on("answer"):
                self._brought[name] = self._bring(name)
        return self._brought[name]

    def _bring(self, name: str) -> NDArray[Any]:
        """Bring a field, and where it is None; in its order by the host, where the device has no room for that."""
        places = self._held.places
        kept, dtype = places.arrays[name], self._dtypes[name].base
        page, masks = page_for(places.shape_of(kept), dtype), []
        if name in self._optional:
            masks = [page_for(page.array.shape, np.dtype(np.bool_))]
            self._none[name] = masks[0].array
        changes = bool(masks) or kept.dtype != dtype
        write: Callable[..., None] = write_ids if masks else write_cast if changes else np.copyto
        if not places.is_on_host:
            try:
                return self._bring_ordered(name, places, page, masks, write)
            except MemoryError:
                self._held.leave_gpu()
                places = self._held.places
        write(page.array, places.arrays[name][places.order], *[mask.array for mask in masks])
        return page.array

    def _bring_ordered(
        self, name: str, places: _Places, page: Page, masks: list[Page], write: Callable[..., None]
    ) -> NDArray[Any]:
        """Bring a field that the device puts in order. Ids get wider there where copy engines can write them as such.

        The host takes 2 ms to make 4 million numbers wide; twice the bytes take 0.3 to cross (NVIDIA H200).

        Raises:
            MemoryError: If the device has no room for it.
        """
        gpu, kept, dtype = self._held.gpu, places.arrays[name], page.array.dtype
        changes = bool(masks) or kept.dtype != dtype
        if changes and page.is_pinned and dtype == np.int64 and kept.dtype.kind == "i":
            with kept.device:
                rows, order = (kept[places.order], None) if places.is_slice else (kept, places.order)
                wide, is_none = take_ids(gpu, rows, order, finds_none=bool(masks))
            if masks:
                bring(is_none, np.dtype(np.bool_), page=masks[0])
            return bring(wide, dtype, page=page)
        return bring(places.on_device(gpu, name), dtype, write, [mask.array for mask in masks], page)

    def none_of(self, name: str) -> NDArray[np.bool_]:
        """Return where a field of those that are optional is None; found while it crosses."""
        self[name]
        return self._none[name]

    def again(self) -> DeviceFields:
        """Return the same fields, to cross once more: into arrays that may be changed without these being so."""
        found = DeviceFields.__new__(DeviceFields)
        found._begin(self._held, self._dtypes, self._optional)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._dtypes)

    def __len__(self) -> int:
        return len(self._dtypes)

    def on_device(self, name: str) -> Any:
        """Return a field as a CuPy array, of the type that the device keeps it in.

        Nothing crosses to the host; the field crosses back where another run needed its room.
        """
        return self._held.places.on_device(self._held.gpu, name)


class _Places(NamedTuple):
    """Where values lie, by local id, and the local ids in the order of the fields: all on the device or all not."""

    arrays: Mapping[str, Any]
    order: Any
    is_on_host: bool

    @property
    def is_slice(self) -> bool:
        return isinstance(self.order, slice)

    def shape_of(self, kept: Any) -> tuple[int, ...]:
        rows = len(range(*self.order.indices(len(kept)))) if self.is_slice else self.order.size
        return rows, *kept.shape[1:]

    def on_device(self, gpu: Gpu, name: str) -> Any:
        values = self.arrays[name]
        if self.is_on_host:
            import cupy

            with cupy.cuda.Device(gpu.ordinal):
                return cupy.asarray(np.ascontiguousarray(values[self.order]))
        with values.device:
            return values[self.order] if self.is_slice else take_rows(gpu, values, self.order)


class _Held:
    """What fields lie in, of one result or of several that share it; see `resident.Held`.

    Attributes:
        places: Where they lie. Another thread's run may change it: who reads it goes on with what it has read.
    """

    def __init__(self, gpu: Gpu, arrays: Mapping[str, Any], order: Any) -> None:
        import cupy

        self.gpu = gpu
        self.places = _Places(arrays, order, is_on_host=False)
        self._leaving = threading.Lock()
        self._is_made = cupy.cuda.Event(disable_timing=True)
        self._is_made.record()
        hold_on_gpu(self)

    @property
    def num_bytes(self) -> int:
        """See `resident.Held`."""
        arrays, order, is_on_host = self.places
        if is_on_host:
            return 0
        held = [*arrays.values()] + ([] if isinstance(order, slice) else [order])
        return sum(int(array.nbytes) for array in held)

    def leave_gpu(self) -> None:
        import cupy

        with self._leaving, cupy.cuda.Device(self.gpu.ordinal):
            arrays, order, is_on_host = self.places
            if is_on_host:
                return
            cupy.cuda.get_current_stream().wait_event(self._is_made)
            on_host = {name: bring(values, values.dtype) for name, values in arrays.items()}
            order = order if isinstance(order, slice) else bring(order, order.dtype)
            wait_for_device(self.gpu.ordinal)  # other threads' kernels may still read what is let go of
            self.places = _Places(on_host, order, is_on_host=True)
