"""Groups of ranks: one process, threads (the fake of the tests) and MPI, by one set of rules."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from collectives import check_collectives
from places import SUPPORT

from sigps.errors import ConfigError, GraphError
from sigps.group import Alone, MPIGroup, launched_ranks, ranks, together, world

MPIRUN = Path(sys.executable).parent / "mpirun"


def test_alone():
    check_collectives(Alone())


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads(run_ranks, size):
    assert run_ranks(size, lambda group: (check_collectives(group), group.rank)[1]) == list(range(size))


def test_threads_that_disagree_are_told(run_ranks):
    def disagree(group):
        return group.barrier() if group.rank else group.broadcast(1)

    with pytest.raises(AssertionError, match="different collectives"):
        run_ranks(2, disagree)


def test_a_thread_that_fails_ends_the_others(run_ranks):
    def fail(group):
        if group.rank == 1:
            raise ValueError("rank 1 is out")
        group.barrier()

    with pytest.raises(ValueError, match="rank 1 is out"):
        run_ranks(3, fail)


class Wire:
    """A communicator of one rank beside another that sends the same, and the bytes of each message."""

    def __init__(self):
        self.sizes, self._sent, self._arriving = [], [], []

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2

    def Alltoall(self, sent, arriving):
        arriving[:] = sent

    def Irecv(self, piece, source):
        self._arriving.append(piece)
        return self

    def Isend(self, piece, dest):
        self.sizes.append(piece.nbytes)
        self._sent.append(piece)
        return self

    def Wait(self):
        for piece in self._arriving:
            piece[...] = self._sent.pop(0)
        self._arriving = []


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.dtype([("a", "<i4"), ("b", "<f8", 3)])])
@pytest.mark.parametrize("row", [(), (3,), (2, 5)])
def test_no_message_of_mpi_is_larger_than_a_piece(dtype, row, monkeypatch):
    monkeypatch.setattr(ranks, "_PIECE_BYTES", 64)
    wire = Wire()
    group = MPIGroup(wire)
    count = 25 * math.prod(row)
    values = np.frombuffer(np.random.default_rng(0).bytes(count * np.dtype(dtype).itemsize), dtype)
    values = values.reshape(25, *row)
    assert values.nbytes > 64
    for part in group.all_to_all([values, values]):
        assert part.dtype == values.dtype
        assert part.tobytes() == values.tobytes()
        assert part.shape == values.shape
    assert max(wire.sizes) <= 64
    assert sum(wire.sizes) == values.nbytes


@pytest.mark.mpi
@pytest.mark.parametrize("size", [1, 3])
def test_mpi(size):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'sigps[mpi]'")
    if not MPIRUN.exists():
        pytest.skip(f"no {MPIRUN}: pip install 'sigps[mpi]'")
    script = (
        f"import sys; sys.path.insert(0, {str(SUPPORT)!r})\n"
        "from collectives import check_collectives\n"
        "from sigps.group import world\n"
        "check_collectives(world())\n"
        "sys.stdout.write(f'rank {world().rank} of {world().size}\\n')\n"
    )
    command = [str(MPIRUN), "-n", str(size), sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of {size}" for rank in range(size)]


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, 1),
        ({"PMI_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "3"}, 3),
        ({"PMI_SIZE": "junk", "MPI_LOCALNRANKS": "2"}, 2),
        ({"PMI_SIZE": ""}, 1),
    ],
)
def test_the_launcher_says_how_many_ranks(environment, ranks):
    assert launched_ranks(environment) == ranks


def test_a_process_of_its_own_is_alone():
    assert isinstance(world(), Alone)


def test_ranks_without_mpi4py_are_told_what_to_install(monkeypatch):
    from sigps import group

    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        ConfigError, match=r"2 ranks, but mpi4py cannot be loaded.*pip install 'sigps\[mpi\]'"
    ):
        group.world.__wrapped__()


def test_together_returns_each_ranks_result(run_ranks):
    assert run_ranks(3, lambda group: together(lambda: group.rank * 2, group)) == [0, 2, 4]


def test_together_alone_raises_the_error_itself():
    def work():
        raise ConfigError("wrong")

    with pytest.raises(ConfigError, match=r"^wrong$"):
        together(work, Alone())


def test_together_a_failing_rank_keeps_its_error_and_the_others_name_it(run_ranks):
    def work(group):
        def fail_on_some():
            if group.rank:
                raise ValueError(f"bad {group.rank}")

        try:
            together(fail_on_some, group)
        except (GraphError, ValueError) as error:
            return type(error), str(error)

    assert run_ranks(3, work) == [
        (GraphError, "rank 1 failed: ValueError: bad 1"),
        (ValueError, "bad 1"),
        (ValueError, "bad 2"),
    ]
