"""The transport by which records cross between ranks, chosen by a pure function of the ranks' devices.

    peer    kernels write into the memory of other GPUs of the host (CUDA IPC)
    nccl    hosts start NCCL, which moves records between GPUs, of one host or several
    mpi     records go through host memory, between devices of any kind

By `peer` the hosts take no part in a superstep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sigps.compiler.program import VertexProgram
from sigps.engine.gpu.choice import bytes_of_totals, most_totals
from sigps.errors import ConfigError

__all__ = ["Transport", "choose_transport", "needs_hosts", "reason_against_nccl", "reason_against_peers"]

Transport = Literal["mpi", "nccl", "peer"]


def choose_transport(
    ranks: Sequence[Mapping[str, Any]],
    requested: Literal["auto", "mpi", "nccl", "peer"],
    *,
    by_hosts: bool = False,
) -> Transport:
    """Choose the transport of a run.

    Args:
        ranks: For each rank its `device`, and for one on a GPU what `engine.gpu.choice.gpu_facts` returns, [size].
        requested: The user's choice.
        by_hosts: Whether hosts take part in every superstep (`needs_hosts`).

    Raises:
        ConfigError: If the user's choice is not possible; it says why.

    >>> choose_transport([{"device": "cpu"}, {"device": "cpu"}], "auto")
    'mpi'
    """
    if requested == "mpi" or len(ranks) == 1:
        return "mpi"
    against = {"peer": reason_against_peers(ranks), "nccl": reason_against_nccl(ranks)}
    if requested == "nccl" and against["nccl"]:
        raise ConfigError(f"exchange.transport=nccl is not possible here: {against['nccl']}. Use auto or mpi")
    if requested == "peer" and against["peer"] not in ("", SHARED):
        raise ConfigError(f"exchange.transport=peer is not possible here: {against['peer']}. Use auto or mpi")
    if not by_hosts and (requested == "peer" or (requested == "auto" and not against["peer"])):
        return "peer"
    return "mpi" if against["nccl"] else "nccl"


def needs_hosts(program: VertexProgram) -> bool:
    """Return whether a program needs hosts: for values kept on edges, or more aggregators than kernels send."""
    return program.reads_edge_links or bytes_of_totals(program) > most_totals(program, has_peers=True)


SHARED = "ranks share a GPU, on which their kernels take turns, and would wait for each other"


def reason_against_peers(ranks: Sequence[Mapping[str, Any]]) -> str:
    """Return why kernels should not write into other ranks' memory; empty where they should."""
    if any("gpu" not in rank for rank in ranks):
        return "some ranks compute on CPU cores"
    if len({rank["host"] for rank in ranks}) > 1:
        return "ranks are on several hosts"
    if len({rank["process"] for rank in ranks}) < len(ranks):
        return "ranks are threads of one process"
    gpus = {rank["gpu"] for rank in ranks}
    for rank in ranks:
        beyond = sorted(gpus - {rank["gpu"]} - set(rank["reaches"]))
        if beyond:
            return f"GPU {rank['gpu']} cannot write to GPU {beyond[0]}"
    return SHARED if len(gpus) < len(ranks) else ""


def reason_against_nccl(ranks: Sequence[Mapping[str, Any]]) -> str:
    """Return why NCCL cannot move what crosses; empty where it can."""
    if any("gpu" not in rank for rank in ranks):
        return "some ranks compute on CPU cores"
    if len({(rank["host"], rank["process"]) for rank in ranks}) < len(ranks):
        return "ranks are threads of one process"
    if len({(rank["host"], rank["gpu"]) for rank in ranks}) < len(ranks):
        return "ranks share a GPU, which NCCL refuses"
    return next((rank["without_nccl"] for rank in ranks if rank["without_nccl"]), "")
