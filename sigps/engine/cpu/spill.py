"""A file of a run without a name, for what its memory has no room for; it is gone when the run and its result are."""

from __future__ import annotations

import os
import platform
import tempfile
import weakref
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.errors import DeviceError
from sigps.graph.report import bytes_text

__all__ = ["SpillFile", "require_disk", "spill_folder"]


def spill_folder() -> Path:
    """Return the folder of such files: the system's for temporary ones (`TMPDIR`)."""
    return Path(tempfile.gettempdir())


def require_disk(num_bytes: int, exchange: Exchange) -> None:
    """Check that the disk has room, before a run begins whose ranks may need it; those of a host share it. Collective.

    Raises:
        DeviceError: On all ranks, if that of one has less.
    """
    folder = spill_folder()
    state = os.statvfs(folder)
    disk = zlib.crc32(f"{platform.node()} {os.stat(folder).st_dev}".encode())
    own = np.array([disk, num_bytes, state.f_bavail * state.f_frsize])
    of_all = exchange.gather(own) if exchange.size > 1 else own[None]
    for rank, (disk, num_bytes, free) in enumerate(of_all.tolist()):
        needed = int(of_all[of_all[:, 0] == disk, 1].sum())
        if num_bytes and needed > free:
            place = folder if rank == exchange.rank else "its folder for temporary files"
            raise DeviceError(
                f"values on edges need {bytes_text(needed)} of disk in {place}, which has {bytes_text(free)} free: "
                "give host_memory more, or name another folder by the environment variable TMPDIR",
                rank=rank,
            )


class SpillFile:
    """Bytes at positions, written and read by several threads.

    Args:
        rank: The rank that has it.

    Raises:
        DeviceError: By all methods, where the disk takes no more.
    """

    def __init__(self, rank: int = 0) -> None:
        self._folder, self._rank = spill_folder(), rank
        try:
            file = tempfile.TemporaryFile("w+b", 0, dir=self._folder)  # noqa: SIM115 - closed with this object
        except OSError as error:
            raise self._failed(error) from None
        self._number = file.fileno()
        weakref.finalize(self, file.close)

    def write(self, at: int, values: NDArray[Any]) -> int:
        """Write an array; return the position behind it."""
        left = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        while left.nbytes:
            try:
                count = os.pwrite(self._number, left[:_MOST], at)
            except OSError as error:
                raise self._failed(error) from None
            left, at = left[count:], at + count
        return at

    def read(self, at: int, values: NDArray[Any]) -> int:
        """Fill an array, which lies in one piece; return the position behind it."""
        left = values.reshape(-1).view(np.uint8).data
        while left.nbytes:
            try:
                count = os.preadv(self._number, [left[:_MOST]], at)
            except OSError as error:
                raise self._failed(error) from None
            if count == 0:
                problem = f"values on edges in {self._folder} are gone: their file was cut short"
                raise DeviceError(problem, rank=self._rank)
            left, at = left[count:], at + count
        return at

    def _failed(self, error: OSError) -> DeviceError:
        return DeviceError(
            f"values on edges cannot wait in {self._folder}: {error.strerror}. Free some room there, name another "
            "folder by the environment variable TMPDIR, or give host_memory more",
            rank=self._rank,
        )


_MOST = 1 << 30
"""Bytes of one call: the system takes no more than 2 GiB."""
