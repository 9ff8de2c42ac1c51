"""The ranks that the launcher started.

`world()` reads the launcher's environment variables, so a process that `mpirun` did not start never imports mpi4py.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sigps.errors import ConfigError
from sigps.group.ranks import Alone, Group, MPIGroup

__all__ = ["launched_rank", "launched_ranks", "world"]


@functools.cache
def world() -> Group:
    """Return the ranks that the launcher started: `Alone` without `mpirun`. The first call is collective.

    From then on they watch each other, to the end of their processes.

    Raises:
        ConfigError: If a launcher started several ranks and mpi4py cannot be imported, or no address is found on which
            they can reach each other.
    """
    if launched_ranks(os.environ) <= 1:
        return Alone()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ConfigError(
            f"started with {launched_ranks(os.environ)} ranks, but mpi4py cannot be loaded ({error}). "
            "Install it with: pip install 'sigps[mpi]'"
        ) from error
    group = MPIGroup(MPI.COMM_WORLD)
    sys.excepthook = functools.partial(_end_all_ranks, group, sys.excepthook)
    from sigps.group.watch import start_watch

    _unlink_shared_memory(group)  # first: a rank that is killed before leaves the names
    start_watch(group)
    return group


def _unlink_shared_memory(group: Group) -> None:
    """Remove the names of the memory that MPICH shares on a host, which would outlive ranks that are killed.

    The memory stays as long as a process has it. All ranks have opened it once all are here.
    """
    group.barrier()
    with contextlib.suppress(OSError):
        mapped = {
            line.split()[-1]
            for line in Path("/proc/self/maps").read_text().splitlines()
            if " /dev/shm/mpich_shm_" in line
        }
        for name in mapped:
            Path(name).unlink(missing_ok=True)


def _end_all_ranks(
    group: MPIGroup,
    report: Callable[..., Any],
    kind: type[BaseException],
    error: BaseException,
    trace: types.TracebackType | None,
) -> None:
    """Print an uncaught exception of this rank and abort all ranks, which may wait for it in a collective.

    An error that all ranks raise, as for a missing file, is printed once: ranks above 0 wait, so that the abort by
    rank 0 ends them first.
    """
    time.sleep(min(0.5 + 0.05 * group.rank, 2.0) if group.rank else 0.0)
    sys.stdout.flush()
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr, flush=True)
        group.abort(130)
    print(f"rank {group.rank} of {group.size} failed:", file=sys.stderr)
    report(kind, error, trace)
    sys.stderr.flush()
    group.abort(1)


def launched_ranks(environment: Mapping[str, str]) -> int:
    """Return the number of ranks of this run, from the variables that MPICH, Open MPI and Slurm set; 1 without them."""
    return _first_number(environment, ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"), 1)


def launched_rank(environment: Mapping[str, str]) -> int:
    """Return this rank's number likewise, which works where MPI cannot be loaded; 0 without them."""
    return _first_number(environment, ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"), 0)


def _first_number(environment: Mapping[str, str], names: Sequence[str], otherwise: int) -> int:
    values = (environment.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdigit()), otherwise)
