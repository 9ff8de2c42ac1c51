"""Measure loading: edges a second from a text file, peak memory, opening a native store, bytes an edge.

    python scripts/bench/loading.py --edges 10000000

Each measurement runs in a process of its own, so that its peak memory is its own. NumPy, Arrow and Numba are
imported before it begins: what libraries take does not grow with a graph, and a program that runs needs them
anyway. What loading itself imports counts. Of a compressed file, what decompressing alone takes is given
beside the peak: an .xz made with -9 needs a dictionary as long as its text, up to 64 MiB, in every reader.

Writes a JSON file to `scripts/bench/results/` and prints a table. The text files are made in a temporary
folder; further files, as small compressed ones, can be named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from facts import RESULTS, machine_facts


def main() -> None:
    """Run the benchmark that the arguments describe, or one measurement of it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--edges", type=int, default=10_000_000)
    options.add_argument(
        "--file", nargs="*", default=[], type=Path, metavar="PATH", help="load these as well"
    )
    options.add_argument("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        text, store = Path(folder) / "edges.txt", Path(folder) / "graph.sigps"
        write_text(text, given.edges)
        rows = [alone("directed", text), alone("both directions", text), alone("undirected", text)]
        alone(f"save {store}", text)
        rows.append(alone("open", store))
        write_text(text, given.edges, weights=True)
        rows += [alone("weighted", text), alone("weighted undirected", text)]
        write_text(text, given.edges, names=True)
        rows.append(alone("string ids", text))
        for file in given.file:
            rows.append(alone("directed", file) | alone("decompress", file) | {"file": file.name})
    for row in rows:
        print(row)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / "loading.json"
    target.write_text(json.dumps(machine_facts() | {"edges": given.edges, "rows": rows}, indent=2) + "\n")
    print(f"written to {target}")


VERTEX_BYTES = {"both directions": 16}
"""What offsets take of a vertex; 8 in one direction."""


def peak_memory() -> int:
    """Return the most bytes that this process has held at once, as Linux counts since it started."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


OPTIONS: dict[str, dict[str, Any]] = {
    "undirected": {"directed": False},
    "weighted": {"weights": True},
    "weighted undirected": {"weights": True, "directed": False},
    "string ids": {"ids": "string"},
}
"""What `load` is told in each measurement."""


def write_text(path: Path, num_edges: int, *, weights: bool = False, names: bool = False) -> None:
    """Write a SNAP text of random edges among a tenth as many vertices.

    Args:
        path: The file.
        num_edges: How many edges.
        weights: Whether a third column has numbers of three digits behind the point.
        names: Whether ids are texts, `user_7`, in place of numbers.
    """
    import numpy as np
    import pyarrow
    import pyarrow.csv

    random = np.random.default_rng(1)
    ends = random.integers(0, num_edges // 10, (2, num_edges))
    columns = {"a": pyarrow.array(ends[0]), "b": pyarrow.array(ends[1])}
    if names:
        texts = pyarrow.array([f"user_{number}" for number in range(num_edges // 10)])
        columns = {name: texts.take(places) for name, places in columns.items()}
    if weights:
        columns["w"] = pyarrow.array(np.round(random.random(num_edges) * 100, 3))
    table = pyarrow.table(columns)
    with path.open("wb") as file:
        file.write(b"# FromNodeId\tToNodeId\n")
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        pyarrow.csv.write_csv(table, file, options)


def alone(what: str, path: Path) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, str(path)]
    row: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return row


def measure(what: str, path: str) -> dict[str, Any]:
    """Do one thing and return its time, its peak memory over the start, and the graph's size."""
    import llvmlite.binding  # noqa: F401 - its memory is not the graph's
    import numpy as np  # noqa: F401
    import pyarrow.csv  # noqa: F401

    import sigps
    from sigps.graph.formats.blocks import TextFile
    from sigps.group import Alone

    before = peak_memory()
    began = time.perf_counter()
    if what == "decompress":
        for _ in TextFile(path).blocks(Alone()):
            pass
        return {"decompressing_alone_bytes": peak_memory() - before}
    graph = sigps.load(path, **OPTIONS.get(what, {}))
    if what == "both directions":
        graph.in_edges()
    seconds = time.perf_counter() - began
    peak = peak_memory() - before
    if what.startswith("save "):
        graph.save(what.removeprefix("save "))
    return {
        "what": what,
        "seconds": round(seconds, 4),
        "million_edges_a_second": round(graph.report.edges_given / seconds / 1e6, 2),
        "bytes_an_edge": round(
            (graph.nbytes - VERTEX_BYTES.get(what, 8) * graph.num_vertices) / graph.num_edges, 2
        ),
        "graph_bytes": graph.nbytes,
        "peak_over_graph": round(peak / graph.nbytes, 2),
    }


if __name__ == "__main__":
    main()
