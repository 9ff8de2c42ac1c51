"""Which engine runs a program: the one that was asked for, or what `device="auto"` comes to here."""

from __future__ import annotations

import logging
from typing import NamedTuple

from sigps.compiler.program import VertexProgram
from sigps.engine.contract import EngineSpec, RunFacts
from sigps.engine.table import ENGINES, engine_of
from sigps.errors import DeviceError
from sigps.graph.graph import Graph
from sigps.group import Group

__all__ = ["DeviceChoice", "choose_engine"]

log = logging.getLogger(__name__)


class DeviceChoice(NamedTuple):
    """The engine to run on, and why it is that one."""

    spec: EngineSpec
    why: str


def choose_engine(
    device: str,
    program: VertexProgram | None,
    graph: Graph,
    facts: RunFacts,
    *,
    rank_on_host: int = 0,
) -> DeviceChoice:
    """Return the engine to run on, and why; what `"auto"` is, and why, is logged once. Collective.

    Nothing is decided by trying: the engines of the table are considered in its order, and the first that nothing
    speaks against is taken. What is expensive to know is asked last (`EngineSpec.reasons_against`).

    Args:
        device: What was asked for: a name of the table, or `"auto"`.
        program: What the compiler derived; None where an engine that is not compiled was asked for.
        graph: The graph that it runs on.
        facts: The run.
        rank_on_host: This rank's number among those of its host.

    Raises:
        DeviceError: If the engine that was asked for cannot run it; it says what it lacks.
    """
    if device != "auto":
        asked = engine_of(device)
        if obstacle := asked.obstacle(program, facts):
            raise DeviceError(f"device={device!r} is not built for {obstacle} yet; use device='cpu'")
        return DeviceChoice(asked, "it was asked for by name")
    assert program is not None
    against = ""
    for spec in ENGINES:
        why_taken = against or "the graph is large enough to pay"
        against = next(filter(None, spec.reasons_against(program, graph, facts, rank_on_host)), "")
        if graph.group.size > 1:
            against = _against_anywhere(against, spec, program, graph.group, rank_on_host)
        if not against:
            _log_once(f"device: {spec.device} ({why_taken})")
            return DeviceChoice(spec, why_taken)
    raise AssertionError("no engine runs every program")


def _against_anywhere(
    against: str, spec: EngineSpec, program: VertexProgram, group: Group, rank_on_host: int
) -> str:
    """Return what speaks against an engine on any rank, where this rank's reason is `against`. Collective."""
    from sigps.system.transport import (
        choose_transport,
        needs_hosts,
        reason_against_nccl,
        reason_against_peers,
    )

    facts = {} if against else spec.facts_of_rank(rank_on_host, 1, alone=False)
    ranks = group.all_gather({"against": against, **facts})
    reasons = [rank["against"] for rank in ranks if rank["against"]]
    by_hosts = needs_hosts(program)
    if reasons or not spec.crosses_devices or choose_transport(ranks, "auto", by_hosts=by_hosts) != "mpi":
        return next(iter(reasons), "")
    return reason_against_nccl(ranks) if by_hosts else reason_against_peers(ranks)


_logged: set[str] = set()


def _log_once(text: str) -> None:
    if text not in _logged:
        _logged.add(text)
        log.info(text)
