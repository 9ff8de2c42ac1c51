"""What every `sigps.group.Group` promises, for groups of threads and of processes."""

from __future__ import annotations

import numpy as np


def check_collectives(group) -> None:
    """Assert what every group promises; called on all its ranks."""
    rank, size = group.rank, group.size
    sent = [np.full(rank + peer, 10 * rank + peer, dtype=np.uint32) for peer in range(size)]
    for peer, part in enumerate(group.all_to_all(sent)):
        assert part.dtype == np.uint32
        assert part.tolist() == [10 * peer + rank] * (peer + rank)
    words = group.all_to_all([np.array([f"é{rank}"] * peer, dtype="<U4") for peer in range(size)])
    assert [part.tolist() for part in words] == [[f"é{peer}"] * rank for peer in range(size)]
    nothing = group.all_to_all([np.empty(0, dtype=np.float64)] * size)
    assert [part.size for part in nothing] == [0] * size
    values = np.array([rank, -rank, 5])
    assert group.all_reduce(values, "sum").tolist() == [sum(range(size)), -sum(range(size)), 5 * size]
    assert group.all_reduce(values, "max").tolist() == [size - 1, 0, 5]
    assert group.all_reduce(values, "min").tolist() == [0, 1 - size, 5]
    assert group.all_gather({"rank": rank}) == [{"rank": peer} for peer in range(size)]
    gathered = group.all_gather_array(np.arange(rank, dtype=np.int64))
    assert [part.tolist() for part in gathered] == [list(range(peer)) for peer in range(size)]
    for length in (127, 128, 5000):  # just within what is gathered in one call of MPI, just above, far above
        rows = group.all_gather_array(np.full(length if rank == 0 else 1, rank))
        assert [row.tolist() for row in rows] == [[0] * length, *([peer] for peer in range(1, size))]
        assert group.broadcast("x" * 8 * length if rank == 0 else "") == "x" * 8 * length
    assert group.all_gather({"cores": rank + 1}) == [{"cores": peer + 1} for peer in range(size)]
    assert group.broadcast(["from", rank]) == ["from", 0]
    order = {"verb": "lease", "supersteps": 1 << 62}
    assert group.broadcast(order if rank == 0 else {}) == order
    group.barrier()
