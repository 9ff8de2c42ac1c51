"""The predictions that `sigps plan` prints: a table by the number of ranks, and which number would be fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigps.account import seconds_text
from sigps.cli.plan import prediction
from sigps.cli.plan.prediction import Device
from sigps.costs.work import work_of
from sigps.graph.report import aligned, bytes_text

if TYPE_CHECKING:
    from sigps.compiler.program import VertexProgram
    from sigps.costs.sizes import PartitionSize, Size
    from sigps.engine.contract import DeviceKind
    from sigps.job.config import JobConfig
    from sigps.job.streaming import Streaming

__all__ = [
    "Forecast",
    "advise",
    "basis",
    "cores_line",
    "crossing_line",
    "devices",
    "forecasts",
    "is_search",
    "kind_of",
    "may_end_at_once",
    "obstacle",
    "rank_counts",
    "steps_of_generator",
    "streamed_line",
    "table",
]


@dataclass(frozen=True)
class Forecast:
    """What is predicted for one number of ranks, in seconds.

    Attributes:
        partition: The largest partition.
        dense: A superstep in which every vertex sends along every edge.
        latency: A superstep in which one vertex runs.
        search: A whole search, where it is known how many supersteps that takes.
        missing_bytes: What a rank's memory lacks; 0 where the graph fits.
    """

    num_ranks: int
    partition: PartitionSize
    dense: float
    latency: float
    search: float | None = None
    missing_bytes: float = 0.0


def rank_counts(num_ranks: int) -> list[int]:
    """Return the numbers of ranks to compare: powers of two below the requested one, and that one.

    >>> rank_counts(6), rank_counts(8), rank_counts(1)
    ([1, 2, 4, 6], [1, 2, 4, 8], [1])
    """
    return [*(1 << i for i in range((num_ranks - 1).bit_length())), num_ranks]


def kind_of(job: JobConfig, num_edges: int, num_ranks: int) -> DeviceKind | None:
    """Return the device on which a job would run: the job's, or that of `auto` on this machine; None for Python."""
    from sigps.engine.table import engine_here, engine_of

    device = job.engine.device
    spec = engine_here(num_edges // num_ranks) if device == "auto" else engine_of(device)
    return spec.predicted_as


def transport_of(requested: str, program: VertexProgram) -> str:
    """Return the transport that a run would use on GPUs that NCCL connects, where this one was requested."""
    from sigps.system.transport import needs_hosts

    return "nccl" if needs_hosts(program) and requested in ("auto", "peer") else requested


def devices(kind: DeviceKind, counts: Iterable[int], transport: str = "auto") -> dict[int, Device]:
    """Return the device of each rank, by the number of ranks."""
    if kind == "h200":
        return {n: prediction.h200(by_peers=transport in ("auto", "peer")) for n in counts}
    from sigps.device.cpu import available_cores

    return {n: prediction.cpu_cores(available_cores(), n) for n in counts}


def basis(kind: DeviceKind, num_ranks: int, transport: str = "auto") -> str:
    """Return the measurements on which a prediction is based, in words."""
    if kind == "cpu":
        return "which the ranks share, by times measured on two cores"
    if num_ranks == 1:
        return "by times measured on one"
    if transport in ("mpi", "nccl"):
        return f"records by {transport}, of which no times are kept: several ranks take at least this"
    beyond = "" if num_ranks <= 8 else "; beyond 8 on one host nothing was measured"
    return f"each rank one of them, by times measured on one, two and four{beyond}"


def obstacle(program: VertexProgram | None, schedule: str = "vertex") -> str:
    """Return why nothing is predicted for a program by a schedule; empty where something is."""
    from sigps.compiler.program import Consumption, Delivery

    if program is None:
        return "only the interpreter runs this program"
    if program.reads_neighbors:
        return "this program looks through the edges of neighbours, whose cost was not measured"
    if program.delivery is Delivery.NONE:
        return "this program sends nothing"
    if schedule == "edge":
        return "predictions are of the vertex schedule"
    if program.delivery is Delivery.DIRECT or program.consumption is Consumption.LISTED:
        return "messages of this program are written out, whose cost was not measured"
    if program.consumption is Consumption.GROUPED:
        return "messages of this program are grouped by key, whose cost was not measured"
    return ""


def is_search(program: VertexProgram) -> bool:
    """Return whether a program spreads over the graph, so that its supersteps grow with the graph's diameter."""
    from sigps.compiler.program import EarlyExit

    stops_early = program.early_exit is not EarlyExit.NEVER
    return stops_early or program.monotone is not None or program.priority_form is not None


def may_end_at_once(program: VertexProgram, size: Size) -> bool:
    """Return whether one rank may find the result at once, as far as the mean degree tells."""
    from sigps.engine.fixed_points import is_mesh

    has_claim = program.path_lengths is not None or program.priority_form is not None
    return has_claim and is_mesh(num_vertices=size.num_vertices, num_edges=size.num_edges, largest_degree=0)


def steps_of_generator(job: JobConfig) -> int | None:
    """Return the supersteps of the longest search through a generated graph; None where there is no formula."""
    if job.graph.generator is None:
        return None
    name, options = job.graph.generator_call
    if name == "grid":
        rows, columns = options["rows"], options["columns"]
        return int(max(rows, columns) if options.get("diagonals") else rows + columns - 1)
    known = {"path": options.get("n"), "star": 3, "complete": 2}
    return known.get(name) or None


def goes_into_tiles(program: VertexProgram, num_edges: int) -> bool:
    """Return whether so many in-edges of a rank go into tiles, where few vertices have most of them."""
    from sigps.engine.gpu.tiling import FEWEST_EDGES

    return program.sends_together and not program.edge_columns and num_edges >= FEWEST_EDGES


def forecasts(
    program: VertexProgram,
    size: Size,
    partitions: Mapping[int, PartitionSize],
    devices: Mapping[int, Device],
    state_bytes: int,
    supersteps: int | None,
    *,
    is_skewed: bool = False,
) -> list[Forecast]:
    """Predict for each number of ranks.

    By this number, `partitions` gives the largest partition and `devices` the device of each rank. `supersteps` is
    None if that of a search is unknown, or the program is no search. `is_skewed` says that few vertices are known to
    have most of the edges, which then go into tiles on a GPU.
    """
    from sigps.engine.gpu.memory_plan import bytes_while_laid_out

    work, found = work_of(program, size, state_bytes), []
    for n, partition in partitions.items():
        device = devices[n]
        edges = partition.edges * (2 if size.directed or n > 1 else 1)
        columns = -(-size.column_bytes // 8)
        needed = bytes_while_laid_out(partition.vertices + partition.ghosts, edges, columns)
        missing = max(0.0, needed - device.memory_bytes)
        in_tiles = is_skewed and goes_into_tiles(program, partition.edges)
        dense, search = prediction.dense_seconds(partition, work, device, n, in_tiles=in_tiles), None
        if supersteps is not None:
            is_wave = supersteps < size.num_vertices
            search = prediction.search_seconds(supersteps, partition, work, device, n, is_wave=is_wave)
        found.append(Forecast(n, partition, dense, device.latency(n), search, missing))
    return found


def table(rows: Sequence[Forecast]) -> list[str]:
    """Return the lines of the table."""
    cells = [["ranks", "cut", "ghosts a rank", "dense superstep", "smallest superstep"]]
    for row in rows:
        cut = f"{row.partition.cut_edges / max(row.partition.edges, 1):.1%}"
        times = [seconds_text(row.dense), seconds_text(row.latency)]
        if row.missing_bytes:
            times = ["does not fit", f"{bytes_text(row.missing_bytes)} short"]
        cells.append([str(row.num_ranks), cut, f"{row.partition.ghosts:,}", *times])
    return aligned(cells)


def streamed_line(row: Forecast, streaming: Streaming, num_threads: int) -> str:
    """Return what a superstep takes that reads all edges of a packed store, and from which disk, in words."""
    unpacking = prediction.unpacking_seconds(streaming.arcs, streaming.rows, num_threads)
    seconds = row.dense + unpacking
    text = f"streamed, a dense superstep takes {seconds_text(seconds)}, of which unpacking {seconds_text(unpacking)}"
    if not streaming.streamed:
        return text
    least = bytes_text(streaming.streamed / seconds)
    return f"{text}; from a disk that reads less than {least}/s as long as reading takes"


def crossing_line(streaming: Streaming) -> str:
    """Return what a superstep takes that reads all packed edges, of which some cross to a GPU, in words."""
    seconds = prediction.crossing_seconds(streaming.streamed, streaming.arcs)
    text = f"a superstep that reads all edges takes {seconds_text(seconds)}"
    rate = bytes_text(streaming.streamed / seconds)
    return text + (f", in which {rate}/s cross" if streaming.streamed else ", and none cross")


def cores_line(streaming: Streaming, record: int, num_cores: int) -> str:
    """Return what the cores of a GPU's host could add to a superstep that reads all packed edges; empty if none cross.

    Args:
        streaming: What streams.
        record: The bytes of a record.
        num_cores: Of the host.
    """
    if not streaming.streamed:
        return ""
    gain = prediction.gain_of_cores(streaming.streamed, streaming.arcs, record * streaming.rows, num_cores)
    cores = f"{num_cores} core{'s' * (num_cores > 1)} of its host"
    verdict = (
        "less than it costs to share pages" if gain < prediction.PAYS else "but sharing pages is not built"
    )
    return (
        f"{cores} pull none of the pages: with these it would be {gain:.2f} times as fast at best, {verdict}"
    )


def advise(
    rows: Sequence[Forecast], num_edges: int, supersteps: int | None = None, *, is_search: bool
) -> str:
    """Return which number of ranks is fastest, and when fewer would be faster than the requested number, in words.

    The prediction for the requested number of ranks is the last of `rows`.
    """
    fitting = [row for row in rows if not row.missing_bytes]
    if not fitting or fitting[-1] is not rows[-1]:
        return f"{_ranks(rows[-1])} {'has' if rows[-1].num_ranks == 1 else 'have'} too little memory: plan with more"
    requested = rows[-1]
    if is_search and supersteps is not None and all(row.search is not None for row in fitting):
        text = f"a search through this graph takes up to about {supersteps:,} superstep{'s' * (supersteps > 1)}: "
        text += ", ".join(f"{seconds_text(row.search or 0)} on {_ranks(row)}" for row in fitting)
        best = min(fitting, key=lambda row: (row.search, row.num_ranks))
        return f"{text}\n{_verdict(best, requested)}" if len(rows) > 1 else text
    best = min(fitting, key=lambda row: (row.dense, row.num_ranks))
    few = fitting[0]
    if few is requested:
        return "fewer ranks have too little memory" if len(rows) > 1 else ""
    if best is few and few.latency <= requested.latency:
        return _verdict(best, requested)
    limit = prediction.most_supersteps((few.dense, requested.dense), (few.latency, requested.latency))
    verdict = f"while supersteps are dense: {_verdict(best, requested)}"
    if is_search:
        return (
            f"{verdict}\na search that takes more than about {limit:,.0f} supersteps is faster on {_ranks(few)}, "
            "as in meshes and road networks: --load counts them"
        )
    edges = prediction.most_edges_of_small(num_edges, limit)
    return (
        f"{verdict}\nsupersteps in which fewer than about {edges:,.0f} edges pass are faster on {_ranks(few)}"
    )


def _verdict(best: Forecast, requested: Forecast) -> str:
    if best is requested:
        return f"use {_ranks(requested)}"
    return f"use {_ranks(best)}: fewer are faster than {requested.num_ranks}"


def _ranks(row: Forecast) -> str:
    return f"{row.num_ranks} rank{'s' * (row.num_ranks > 1)}"
