"""What a run on a GPU left of its vertices: fields that cross to the host when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DeviceFields"]


class DeviceFields(Mapping[str, NDArray[Any]]):
    """State fields that stay on the device until somebody asks for one.

    Args:
        states: Each field's values by place, and its type on the host.
        places: [num_owned]: the place of a local id.
    """

    def __init__(self, states: Mapping[str, tuple[Any, np.dtype[Any]]], places: Any) -> None:
        self._states, self._places = states, places
        self._brought: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        import cupy

        if name not in self._brought:
            dtype = self._states[name][1]
            self._brought[name] = cupy.asnumpy(self.on_device(name)).astype(dtype, copy=False)
        return self._brought[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def on_device(self, name: str) -> Any:
        """Return a field as a CuPy array, of the type that the device keeps it in; nothing crosses to the host."""
        return self._states[name][0][self._places]
