"""Jobs inside a Ray cluster: a run with what Ray gave its task, and a pool as an actor (extra `ray`).

Ray says on which machine, and with how many cores and GPUs; `sigps` runs on those. A run is of one task, so of one
machine.

    import ray, sigps.ray

    actor = sigps.ray.pool_actor({"web": "/data/web.sigps"}, num_cpus=8)
    tables = ray.get([actor.run.remote(BFS(source=s), "web") for s in (1, 5, 9)])  # Arrow tables
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sigps.errors import ConfigError
from sigps.extras import needs
from sigps.graph.graph import Graph
from sigps.job.result import Result
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    import pyarrow

    from sigps.serve.pool import Pool

__all__ = ["PoolActor", "pool_actor", "share", "table_of"]


def share() -> dict[str, Any]:
    """Return what Ray gave to this task or actor, as options of `sigps.run`: `device` and `threads`.

    Ray binds a task to no cores, so that a run would else take all of its machine. GPUs it shows only those that it
    gave.

    Raises:
        ConfigError: If Ray is missing, or this is no task and no actor.
        DeviceError: If Ray gave several GPUs, of which a run in one process uses one.

    >>> share()  # doctest: +SKIP
    {'device': 'cpu', 'threads': 8}
    """
    with needs("Ray", "ray"):
        import ray

    if not ray.is_initialized() or ray.get_runtime_context().worker.mode != ray.WORKER_MODE:
        raise ConfigError("sigps.ray.share() is for tasks and actors of Ray: call it inside one")
    given = ray.get_runtime_context().get_assigned_resources()
    return _options(given.get("CPU", 0.0), given.get("GPU", 0.0))


def _options(num_cpus: float, num_gpus: float) -> dict[str, Any]:
    """Return the options of a run that has so many cores and GPUs. Pure.

    >>> _options(4.0, 0.0), _options(0.5, 0.0), _options(4.0, 0.5)
    ({'device': 'cpu', 'threads': 4}, {'device': 'cpu', 'threads': 1}, {'device': 'cuda', 'threads': 4})
    """
    if num_gpus > 1:
        raise ConfigError(
            f"Ray gave {num_gpus:g} GPUs, and a run in one process uses one: num_gpus=1, or mpirun in an allocation"
        )
    return {"device": "cuda" if num_gpus else "cpu", "threads": max(1, int(num_cpus))}


def table_of(result: Result) -> pyarrow.Table:
    """Return a result as it can travel: ids and fields, and in `schema.metadata[b"sigps"]` JSON of how it ended."""
    about = {
        "reason": result.reason,
        "supersteps": result.supersteps,
        "device": result.device,
        "aggregators": {
            name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
            for name, value in result.aggregators.items()
        },
    }
    return result.to_arrow().replace_schema_metadata({b"sigps": json.dumps(about).encode()})


class PoolActor:
    """A pool in an actor; `pool_actor` makes one. Its methods are called by `.remote`.

    Args:
        graphs: By name: graphs, or files that the actor's machine has.
        options: Of `sigps.pool`, but for the devices.
    """

    def __init__(self, graphs: Mapping[str, Graph | str | os.PathLike[str]], **options: Any) -> None:
        from sigps.serve.pool import pool

        given = share()
        self._pool: Pool = pool(given["device"], threads=given["threads"], **options)
        for name, source in graphs.items():
            self._pool.graph(name, source)

    async def run(self, program: Vertex, graph: str, **options: Any) -> pyarrow.Table:
        """Run a job among others; `ray.cancel` cancels it. Options are those of `Pool.submit`; returns `table_of`."""
        import asyncio

        job = await asyncio.to_thread(self._pool.submit, program, graph, **options)
        try:
            return await asyncio.to_thread(table_of, await job)
        finally:
            job.cancel()

    async def graph(self, name: str, source: Graph | str | os.PathLike[str], **options: Any) -> None:
        """Keep a graph, as `Pool.graph` does."""
        import asyncio

        await asyncio.to_thread(self._pool.graph, name, source, **options)

    async def jobs(self) -> list[dict[str, Any]]:
        """Return the table of jobs, newest first, a dict each."""
        from dataclasses import asdict

        return [asdict(row) for row in self._pool.jobs()]


def pool_actor(
    graphs: Mapping[str, Graph | str | os.PathLike[str]],
    *,
    num_cpus: float = 1,
    num_gpus: float = 0,
    actor: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Start an actor of Ray that has a pool, and return its handle. It ends with its last handle.

    Args:
        graphs: By name: graphs, or files that the machine has on which Ray places the actor.
        num_cpus: Cores that Ray takes for it; a job has as many threads.
        num_gpus: GPUs that Ray takes for it: 1, or a part of one, for a pool on the GPU.
        actor: More of Ray's options, such as `{"name": "web", "lifetime": "detached"}` or a scheduling strategy.
        options: Of `sigps.pool`, but for the devices.

    Raises:
        ConfigError: If Ray is missing.
    """
    with needs("Ray", "ray"):
        import ray

    more = {"max_concurrency": 1000, **(actor or {})}
    made = ray.remote(PoolActor).options(num_cpus=num_cpus, num_gpus=num_gpus, **more)
    return made.remote(dict(graphs), **options)
