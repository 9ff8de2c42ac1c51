"""Which transport a run takes: the whole table."""

from __future__ import annotations

from typing import Any

import pytest
from edge_programs import Closeness, Marks
from equality_programs import Jump

from sigps import Vertex
from sigps.apps import EgoNet, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.errors import ConfigError
from sigps.system.transport import choose_transport, needs_hosts, reason_against_nccl, reason_against_peers

CPU = {"device": "cpu"}


def gpu(
    number: int,
    *,
    host: str = "a",
    process: int | None = None,
    reaches: str = "0123",
    without_nccl: str = "",
) -> dict[str, Any]:
    own = str(number)
    return {
        "device": "cuda",
        "host": host,
        "process": number if process is None else process,
        "gpu": own,
        "reaches": [other for other in reaches if other != own],
        "without_nccl": without_nccl,
    }


PAIR = [gpu(0), gpu(1)]
NEITHER = {
    "some ranks compute on CPU cores": [gpu(0), CPU],
    "ranks are threads of one process": [gpu(0, process=7), gpu(1, process=7)],
}
OTHERS = {
    "ranks are on several hosts": [gpu(0, process=7), gpu(0, host="b", process=7)],
    "GPU 1 cannot write to GPU 2": [gpu(0), gpu(1, reaches="0"), gpu(2)],
}


def test_gpus_that_reach_each_other() -> None:
    for ranks in (PAIR, [gpu(i) for i in range(4)]):
        assert reason_against_peers(ranks) == ""
        for requested, chosen in (("auto", "peer"), ("peer", "peer"), ("nccl", "nccl"), ("mpi", "mpi")):
            assert choose_transport(ranks, requested) == chosen  # type: ignore[arg-type]


def test_hosts_take_part_in_messages_by_name() -> None:
    for requested, chosen in (("auto", "nccl"), ("peer", "nccl"), ("nccl", "nccl"), ("mpi", "mpi")):
        assert choose_transport(PAIR, requested, by_hosts=True) == chosen  # type: ignore[arg-type]
    assert choose_transport([gpu(0), gpu(1, without_nccl="none here")], "auto", by_hosts=True) == "mpi"


@pytest.mark.parametrize("reason", [*NEITHER, *OTHERS])
def test_others_do_not_write_to_each_other(reason: str) -> None:
    ranks = (NEITHER | OTHERS)[reason]
    assert reason_against_peers(ranks) == reason
    assert choose_transport(ranks, "auto") == ("nccl" if reason in OTHERS else "mpi")
    assert choose_transport(ranks, "mpi") == "mpi"
    with pytest.raises(ConfigError, match=f"not possible here: {reason}. Use auto or mpi"):
        choose_transport(ranks, "peer")


@pytest.mark.parametrize("reason", NEITHER)
def test_what_nccl_cannot_do(reason: str) -> None:
    assert reason_against_nccl(NEITHER[reason]) == reason
    with pytest.raises(ConfigError, match=f"transport=nccl is not possible here: {reason}"):
        choose_transport(NEITHER[reason], "nccl")


def test_where_a_rank_has_no_nccl_records_go_through_the_host() -> None:
    ranks = [gpu(0), gpu(1, host="b", without_nccl="CuPy finds no NCCL")]
    assert reason_against_nccl(ranks) == "CuPy finds no NCCL"
    assert choose_transport(ranks, "auto") == "mpi"
    with pytest.raises(ConfigError, match="CuPy finds no NCCL"):
        choose_transport(ranks, "nccl")


def test_ranks_that_share_a_gpu_may_where_it_is_asked_for() -> None:
    ranks = [gpu(0, process=1), gpu(0, process=2), gpu(1, process=3)]
    assert "share a GPU" in reason_against_peers(ranks)
    assert [choose_transport(ranks, requested) for requested in ("auto", "peer", "mpi")] == [
        "mpi",
        "peer",
        "mpi",
    ]
    with pytest.raises(ConfigError, match="ranks share a GPU, which NCCL refuses"):
        choose_transport(ranks, "nccl")


def test_one_rank_has_no_other_to_write_to() -> None:
    for requested in ("auto", "mpi", "nccl", "peer"):
        assert choose_transport([CPU], requested) == "mpi"  # type: ignore[arg-type]
        assert choose_transport([gpu(0)], requested) == "mpi"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "needs"),
    [(PageRank(), False), (Jump(), False), (Marks(), True), (EgoNet(source=0), True), (Closeness(), True)],
    ids=["records", "direct messages", "kept on edges", "kept and read back", "common neighbours"],
)
def test_what_kernels_do_not_pass_to_others(program: Vertex, needs: bool) -> None:
    assert needs_hosts(analyse(program)) == needs
