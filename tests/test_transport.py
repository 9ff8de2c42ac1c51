"""Which transport a run takes: the whole table."""

from __future__ import annotations

from typing import Any

import pytest

from sigps.errors import ConfigError
from sigps.system.transport import choose_transport, reason_against_peers

CPU = {"device": "cpu"}


def gpu(number: int, *, host: str = "a", process: int | None = None, reaches: str = "0123") -> dict[str, Any]:
    own = str(number)
    return {
        "device": "cuda",
        "host": host,
        "process": number if process is None else process,
        "gpu": own,
        "reaches": [other for other in reaches if other != own],
    }


PAIR = [gpu(0), gpu(1)]
OTHERS = {
    "some ranks compute on CPU cores": [gpu(0), CPU],
    "ranks are on several hosts": [gpu(0), gpu(1, host="b")],
    "ranks are threads of one process": [gpu(0, process=7), gpu(1, process=7)],
    "GPU 1 cannot write to GPU 2": [gpu(0), gpu(1, reaches="0"), gpu(2)],
}


def test_gpus_that_reach_each_other() -> None:
    for ranks in (PAIR, [gpu(i) for i in range(4)]):
        assert reason_against_peers(ranks) == ""
        assert [choose_transport(ranks, asked) for asked in ("auto", "peer", "mpi")] == [
            "peer",
            "peer",
            "mpi",
        ]


@pytest.mark.parametrize("reason", OTHERS)
def test_others_do_not_write_to_each_other(reason: str) -> None:
    ranks = OTHERS[reason]
    assert reason_against_peers(ranks) == reason
    assert choose_transport(ranks, "auto") == "mpi"
    assert choose_transport(ranks, "mpi") == "mpi"
    with pytest.raises(ConfigError, match=f"not possible here: {reason}. Use auto or mpi"):
        choose_transport(ranks, "peer")


def test_ranks_that_share_a_gpu_may_where_it_is_asked_for() -> None:
    ranks = [gpu(0, process=1), gpu(0, process=2), gpu(1, process=3)]
    assert "share a GPU" in reason_against_peers(ranks)
    assert [choose_transport(ranks, asked) for asked in ("auto", "peer", "mpi")] == ["mpi", "peer", "mpi"]


def test_one_rank_has_nobody_to_write_to() -> None:
    for asked in ("auto", "mpi", "peer"):
        assert choose_transport([CPU], asked) == "mpi"
        assert choose_transport([gpu(0)], asked) == "mpi"
