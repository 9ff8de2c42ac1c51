"""What each rank ran: its device, its partition in numbers, and the memory that it took."""

from __future__ import annotations

import platform
import resource
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sigps.engine.contract import EngineSpec
from sigps.engine.partition.subgraph import Subgraph
from sigps.group import Group

__all__ = ["RankFacts", "ranks_of_run"]


class RankFacts(NamedTuple):
    """One rank at the end of a run.

    Attributes:
        host: The name of its machine.
        device: The name of its engine's device.
        cores: Its threads on the CPU.
        num_vertices: Vertices that it owns.
        num_edges: Their in-edges.
        num_ghosts: Remote vertices with an edge into its partition.
        peak_bytes: The most host memory that its process has had so far.
        held_bytes: What it holds of the device's own memory; 0 where that is the host's.
        gigabytes_per_second: The bandwidth of the device's memory; None where it is not known.
    """

    host: str
    device: str
    cores: int
    num_vertices: int
    num_edges: int
    num_ghosts: int
    peak_bytes: int
    held_bytes: int
    gigabytes_per_second: float | None = None


def ranks_of_run(
    group: Group, spec: EngineSpec, registrations: Sequence[Mapping[str, Any]], subgraph: Subgraph
) -> list[RankFacts]:
    """Return what each rank ran, by rank. Collective; one small exchange a run.

    Args:
        group: The ranks.
        spec: This rank's engine.
        registrations: What each rank said of itself before the run.
        subgraph: This rank's partition.
    """
    said = registrations[group.rank]
    own = RankFacts(
        host=platform.node(),
        device=said["device"],
        cores=said["cores"],
        num_vertices=subgraph.num_owned,
        num_edges=int(subgraph.incoming.offsets[-1]),
        num_ghosts=subgraph.num_ghosts,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,  # Linux counts KiB
        held_bytes=spec.held_bytes(),
        gigabytes_per_second=said.get("gigabytes_per_second"),
    )
    return [own] if group.size == 1 else [RankFacts(**r) for r in group.all_gather(own._asdict())]
