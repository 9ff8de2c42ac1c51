"""Outbox records made messages one by one, in plain Python: how an interpreter goes on from what was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import Snapshot
from sigps.model.fields import as_computed

__all__ = ["messages_of"]


def messages_of(
    program: VertexProgram,
    params: tuple[Any, ...],
    snapshot: Snapshot,
    subgraph: Subgraph,
    columns: Mapping[str, NDArray[Any]],
) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
    """Yield target (gid), sender (gid) and message of all that is in flight from this partition's vertices.

    Args:
        program: What the records belong to.
        params: The values of its parameters, in its order.
        snapshot: The partition's part; records are in flight.
        subgraph: The partition, with its out-edges.
        columns: The out-edges' columns by name.
    """
    names: dict[str, Any] = {**program.namespace}
    exec(compile(program.module, program.file, "exec"), names)
    edges, seen = subgraph.outgoing, subgraph.outgoing_ids()
    assert edges is not None
    env = (snapshot.superstep - 1, subgraph.num_vertices, subgraph.num_edges)
    used = [columns[name] for name in program.edge_columns]
    lids = subgraph.local_ids(snapshot.ends)
    for at in np.argsort(snapshot.ends):
        lid = int(lids[at])
        record = tuple(as_computed(v[at], v.dtype) if v.ndim > 1 else v[at] for v in snapshot.values)
        source = int(subgraph.ids[lid]) if subgraph.ids.size else lid
        for e in range(int(edges.offsets[lid]), int(edges.offsets[lid + 1])):
            row = tuple(column[e] for column in used)
            passes, message = names["edge"](env, params, record, source, int(seen[e]), row)
            if passes:
                yield int(edges.ends[e]), int(snapshot.ends[at]), message
