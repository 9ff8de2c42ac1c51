"""The figures of a report, as plain data: what the page shows, and what a test reads back from it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from sigps.account import LINES, Line
from sigps.compiler.explain import described
from sigps.compiler.program import Consumption, Delivery
from sigps.costs.memory import bytes_of_states, bytes_of_tables, memory
from sigps.costs.sizes import PartitionSize
from sigps.costs.work import Work, work_of
from sigps.engine.contract import Share
from sigps.engine.stats import SuperstepStats
from sigps.graph.degree_classes import DegreeClass, degree_classes
from sigps.graph.graph import Graph
from sigps.report.record import Finished, RunRecord
from sigps.system.rank_facts import RankFacts
from sigps.version import __version__

__all__ = ["COLUMNS", "MOST_ROWS", "degrees_of", "figures", "superstep_columns", "work_of_run"]

MOST_ROWS = 8_000
"""Rows of the table of supersteps; of longer runs a row is several supersteps."""

COLUMNS = (
    "superstep",
    "last",
    "direction",
    "seconds",
    "active",
    "messages",
    "bytes_moved",
    "imbalance",
    "gigabytes_per_second",
)
"""Of a row: its first superstep and its last, and what `SuperstepStats` has. Of several supersteps seconds, active
vertices, messages and bytes are added up, the direction is the most frequent, and the imbalance the greatest.
Gigabytes (10**9 bytes) are those that messages and vertices move through memory at least (`Work`), though caches may
serve them; 0 where that is not known."""

_ENDS = {
    "converged": "No vertex was active any more, and no message was in flight.",
    "stopped": "The program stopped it, in its master() or next_phase().",
    "max_supersteps": "It reached max_supersteps; the program had more to do.",
}

_PHASES: Mapping[Line, str] = {
    "import": "importing modules",
    "load": "reading or generating edges",
    "build": "building the graph, partitioning and laying it out",
    "compile": "compiling the program, or reading what was compiled",
    "transfer": "bringing the graph to the device",
    "supersteps": "supersteps",
    "answer": "collecting, printing and writing the result",
    "rest": "everything else",
}


def figures(
    result: Finished,
    record: RunRecord,
    *,
    highest: Mapping[str, Sequence[tuple[Any, Any]]],
    degrees: Mapping[str, Sequence[DegreeClass]] | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Return what a report shows, in types that JSON has.

    Args:
        result: How the run ended.
        record: How it was asked for and went.
        highest: The vertices with the highest values, with these, by field.
        degrees: What `degrees_of` found of the graph; None where that is not there any more, or spread over ranks.
        command: What repeats the run; None for what the record knows.
    """
    seconds = sum(s.seconds for s in result.stats)
    messages = sum(s.messages for s in result.stats)
    return {
        "program": type(record.program).__name__,
        "doc": (type(record.program).__doc__ or "").strip().split("\n")[0].replace("`", ""),
        "params": {name: repr(value) for name, value in record.program.params.items()},
        "began": datetime.fromtimestamp(record.began).astimezone().isoformat(timespec="seconds"),
        "reason": result.reason,
        "why_ended": _ENDS[result.reason],
        "summary": result.summary(),
        "device": result.device,
        "why_device": record.why_device[:1].upper() + record.why_device[1:] + ".",
        "num_supersteps": len(result.stats),
        "seconds_in_supersteps": seconds,
        "messages": messages,
        "messages_per_second": messages / seconds if seconds else None,
        "graph": _graph(record),
        "phases": [
            {"name": line, "what": _PHASES[line], "seconds": result.account.get(line, 0.0)} for line in LINES
        ],
        "supersteps": superstep_columns(result.stats, work_of_run(record)),
        "roof": _roof(record),
        "saves": [
            {"superstep": s.superstep, "seconds": s.seconds, "bytes": s.num_bytes} for s in result.saves
        ],
        "ranks": [_rank(record, number) for number in range(len(record.ranks))],
        "derived": described(record.derived, record.program.declaration) if record.derived else None,
        "degrees": degrees,
        "highest": {field: [[_plain(i), _plain(v)] for i, v in pairs] for field, pairs in highest.items()},
        "aggregators": {name: _text(value) for name, value in result.aggregators.items()},
        "versions": _versions(),
        "repeat": command or _command(record),
    }


def work_of_run(record: RunRecord) -> Work | None:
    """Return what a message and a vertex move through memory; None where that is not known."""
    derived = record.derived
    is_known = derived is not None and derived.delivery is Delivery.RECORD and not derived.reads_neighbors
    if derived is None or not is_known or derived.consumption in (Consumption.LISTED, Consumption.GROUPED):
        return None
    return work_of(derived, record.size, bytes_of_states(record.program, record.precision))


def _roof(record: RunRecord) -> float | None:
    """Return the bandwidth of all ranks' memory in GB/s; None where that of a device is not known."""
    known = [rank.gigabytes_per_second for rank in record.ranks if rank.gigabytes_per_second is not None]
    return sum(known) if known and len(known) == len(record.ranks) else None


def superstep_columns(stats: Sequence[SuperstepStats], work: Work | None = None) -> dict[str, list[Any]]:
    """Return the supersteps as columns, `COLUMNS`: at most `MOST_ROWS` rows, each of as many supersteps as needed."""
    size = max(1, -(-len(stats) // MOST_ROWS))
    rows: list[tuple[Any, ...]] = []
    group: list[SuperstepStats] = []
    for s in stats:
        group.append(s)
        if len(group) == size:
            rows.append(_row(group, work))
            group = []
    if group:
        rows.append(_row(group, work))
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return {name: list(values) for name, values in zip(COLUMNS, columns, strict=True)}


def _row(group: Sequence[SuperstepStats], work: Work | None) -> tuple[Any, ...]:
    directions = [s.direction for s in group]
    seconds, active, messages = (
        sum(getattr(s, name) for s in group) for name in ("seconds", "active", "messages")
    )
    num_bytes = work.edge * messages + work.vertex * active if work is not None else 0
    return (
        group[0].superstep,
        group[-1].superstep,
        max(sorted(set(directions)), key=directions.count),
        float(f"{seconds:.6g}"),  # the file holds thousands
        active,
        messages,
        sum(s.bytes_moved for s in group),
        round(max(s.imbalance for s in group), 4),
        float(f"{num_bytes / seconds * 1e-9:.4g}") if seconds > 0 else 0.0,
    )


def degrees_of(graph: Graph) -> dict[str, list[DegreeClass]]:
    """Return the classes of a graph's degrees by kind: out and in, or one. Collective; O(edges) where directed."""
    if not graph.directed:
        return {"degree": degree_classes(graph.out_degrees(), graph.group)}
    return {
        "out-degree": degree_classes(graph.out_degrees(), graph.group),
        "in-degree": degree_classes(graph.in_degrees(), graph.group),
    }


def _graph(record: RunRecord) -> dict[str, Any]:
    loaded = record.loaded
    return {
        "source": loaded.source or "arrays in memory",
        "format": loaded.format,
        "num_vertices": record.size.num_vertices,
        "num_edges": record.size.num_edges,
        "num_columns": record.num_columns,
        "directed": record.size.directed,
        "bytes": loaded.num_bytes,
        "load": str(loaded),
    }


def _rank(record: RunRecord, number: int) -> dict[str, Any]:
    rank = record.ranks[number]
    return {
        "rank": number,
        "host": rank.host,
        "device": rank.device,
        "cores": rank.cores,
        "vertices": rank.num_vertices,
        "edges": rank.num_edges,
        "ghosts": rank.num_ghosts,
        "planned_bytes": _planned(record, rank),
        "held_bytes": rank.held_bytes,
        "peak_bytes": rank.peak_bytes,
    }


def _planned(record: RunRecord, rank: RankFacts) -> dict[str, int]:
    """Return what a rank was to take, by purpose: of its device's memory, or of the host's where that is the same."""
    share = Share(
        num_vertices=rank.num_vertices,
        num_edges=rank.num_edges,
        num_columns=record.num_columns,
        directed=record.size.directed,
        num_ranks=len(record.ranks),
        edges_everywhere=record.size.num_edges,
    )
    if record.derived and (of_device := record.spec.num_bytes(record.derived, share)):
        return of_device
    return memory(
        record.size,
        record.derived,
        len(record.ranks),
        bytes_of_states(record.program, record.precision),
        PartitionSize(rank.num_vertices, rank.num_edges, ghosts=rank.num_ghosts),
        loaded=record.loaded_size,
        table_bytes=bytes_of_tables(record.program),
        num_threads=rank.cores if record.spec.device == "cpu" and record.reorders else 0,
    )


def _versions() -> dict[str, str]:
    """Return the versions of what took part: packages that this process has imported."""
    found = {"sigps": __version__, "Python": platform.python_version()}
    for name in ("numpy", "llvmlite", "mpi4py", "cupy"):
        if name in sys.modules:
            found[name] = getattr(sys.modules[name], "__version__", "unknown")
    if "cupy" in found:
        found["cuda-core"] = importlib.metadata.version("cuda-core")
    return found | {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": f"{os.cpu_count()}, {len(os.sched_getaffinity(0))} for this process",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _command(record: RunRecord) -> str:
    """Return the call that repeats a run, and the command that made it."""
    options = "".join(f", {name}={value!r}" for name, value in record.options.items())
    lines = [f"sigps.run({record.program!r}, graph{options})"]
    script = record.arguments[0] if record.arguments else ""
    if script and script != "-c" and Path(script).suffix == ".py":
        ranks = ["mpirun", "-n", str(len(record.ranks))] if len(record.ranks) > 1 else []
        lines.append(f"# in {shlex.join([*ranks, 'python', *record.arguments])}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers that it cannot as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else np.array2string(np.asarray(value), threshold=16)
