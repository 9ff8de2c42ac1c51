"""Native stores that were changed by somebody who made their checksums right again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

MAGIC = b"sigps graph store\n"


def change_header(
    store: Path, change: Callable[[dict[str, Any]], Any], *, version: int | None = None
) -> None:
    """Change what a store's header says, in place."""
    path = store / "header.msgpack"
    written, _, body = msgpack.unpackb(path.read_bytes()[len(MAGIC) :])
    header = msgpack.unpackb(body)
    change(header)
    body = msgpack.packb(header)
    path.write_bytes(MAGIC + msgpack.packb([version or written, zlib.crc32(body), body]))


def change_array(store: Path, name: str, change: Callable[[NDArray[Any]], Any]) -> None:
    """Change the values of one of a store's arrays, in place; its length stays."""

    def change_sums(header: dict[str, Any]) -> None:
        array = header["arrays"][name]
        values = np.fromfile(store / f"{name}.bin", dtype=array["dtype"])
        change(values)
        values.tofile(store / f"{name}.bin")
        raw = values.tobytes()
        array["pieces"] = [
            [first, size, *sums_of(raw[first : first + size])] for first, size, _, _ in array["pieces"]
        ]

    change_header(store, change_sums)


def sums_of(raw: bytes) -> list[int]:
    """Return the two sums of some bytes: of the 32-bit words, and of each times its place, modulo 2**64."""
    words = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
    return [sum(words) % 2**64, sum(i * word for i, word in enumerate(words)) % 2**64]
