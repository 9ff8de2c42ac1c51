"""Stores that were damaged or crafted, opened and run: `python store_mutations.py SEED COUNT` says how that ended.

A damaged store has other bytes than were written: it is refused, or gives the right results. One that was crafted has
right checksums: it is refused, or gives some result or an error of sigps. Neither ends the process.
"""

from __future__ import annotations

import faulthandler
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from crafted_stores import change_array, change_header
from edge_programs import Returns

from sigps import Graph, SigpsError, Vertex, run
from sigps.apps import SSSP, KCore, PageRank, Triangles
from sigps.graph.load import open_store

Programs = list[Vertex]


def graphs() -> dict[str, tuple[Graph, Programs]]:
    """Return graphs of all kinds of ids, and the programs to run on each."""
    rng = np.random.default_rng(7)
    sources, targets = (rng.integers(0, 40, 200) ** 2 // 40 for _ in range(2))
    weights, flags = rng.integers(1, 9, 200).astype(float), rng.integers(0, 2, 200).astype(bool)
    names = np.array([f"v{i:02}" for i in range(40)])
    sparse: Any = {"vertices": range(0, 120, 3), "columns": {"flag": flags}}
    return {
        "sparse ids": (
            Graph.from_edges(3 * sources, 3 * targets, weights, **sparse).with_vertex_columns(
                {"at": rng.random((40, 2))}
            ),
            [PageRank(iterations=3), SSSP(source=0)],
        ),
        "names": (Graph.from_edges(names[sources], names[targets]), [PageRank(iterations=3)]),
        "undirected": (
            Graph.from_edges(sources, targets, directed=False, duplicates="drop", self_loops="drop"),
            [KCore(), Triangles(), Returns()],
        ),
    }


def damage(store: Path, rng: random.Random) -> str:
    """Change bytes of a store as disks and copies do; return what was done."""
    files = sorted(path for path in store.iterdir() if path.stat().st_size)
    path = rng.choice(files)
    raw = bytearray(path.read_bytes())
    at = rng.randrange(len(raw))
    way = rng.choice(
        ["bit", "bit", "high bit", "byte", "zeros", "cut", "longer", "swapped", "gone", "other file"]
    )
    if way == "bit":
        raw[at] ^= 1 << rng.randrange(8)
    elif way == "high bit":
        at = at // 4 * 4 + 3
        raw[min(at, len(raw) - 1)] ^= 0x80
    elif way == "byte":
        raw[at] = rng.randrange(256)
    elif way == "zeros":
        raw[at : at + 32] = bytes(len(raw[at : at + 32]))
    elif way == "cut":
        del raw[at:]
    elif way == "longer":
        raw += rng.randbytes(8)
    elif way == "swapped":
        other = rng.randrange(len(raw))
        raw[at : at + 4], raw[other : other + 4] = raw[other : other + 4], raw[at : at + 4]
    elif way == "other file":
        raw = bytearray(rng.choice(files).read_bytes())
    path.write_bytes(raw)
    if way == "gone":
        path.unlink()
    return f"{way} of {path.name} at {at}"


def craft(store: Path, rng: random.Random) -> str:
    """Change a store and make its checksums right again; return what was done."""
    if rng.random() < 0.3:
        return _craft_header(store, rng)
    name = rng.choice([path.stem for path in sorted(store.glob("*.bin"))])

    def change(values: Any) -> None:
        if values.dtype.kind == "U":
            values = values.view(np.uint32)
        if rng.random() < 0.3:
            rng.shuffle(values)
            return
        for _ in range(rng.choice([1, 1, 4])):
            outside = rng.choice([40, 41, 2**31, 2**32 - 1, 2**63, 2**64 - 1, rng.getrandbits(64)])
            bits = rng.choice([outside, rng.randrange(40), rng.randrange(200)])
            width = 8 * values.itemsize
            raw = values.view(f"u{values.itemsize}")
            raw[rng.randrange(raw.size)] = bits % 2**width

    change_array(store, name, change)
    return f"values of {name}"


def _craft_header(store: Path, rng: random.Random) -> str:
    def change(header: dict[str, Any]) -> None:
        array = header["arrays"][rng.choice(sorted(header["arrays"]))]
        wrong = rng.choice([0, 1, -1, 39, 41, 2**31, 2**63, None, "identity", "table", [], True, 0.5])
        place = rng.choice([header, array, header.get("packing", array)])
        key = rng.choice(sorted(place))
        if place is header and key == "directed":
            wrong = not header["directed"]
        if key == "dtype":
            wrong = rng.choice(["<u4", "<u8", "<i8", "<f8", "<U1", "<U900000000", "|O", "|b1", "|V8"])
        place[key] = wrong
        said.append(f"{key} of the header {wrong!r}")

    said: list[str] = []
    change_header(store, change)
    return said[0]


def results(graph: Graph, programs: Programs) -> list[Any]:
    """Return all that programs leave on a graph."""
    found = []
    for program in programs:
        result = run(program, graph, device="cpu", threads=1, max_supersteps=40)
        found += [result.ids.tolist(), *(result[name].tolist() for name in result.fields)]
    return found


Outcome = tuple[str, str]


def outcomes(folder: Path, seed: int, count: int) -> list[Outcome]:
    """Return how each of `count` changed stores ended, and what was changed."""
    known = graphs()
    for name, (graph, programs) in [*known.items()]:
        graph.save(folder / name, in_edges=name == "sparse ids")
        for order in ("given", "degree"):
            packed = f"{name} packed by {order}"
            graph.save(folder / packed, packed=True, order=order)
            known[packed] = graph, programs
    right = {name: results(open_store(folder / name), programs) for name, (_, programs) in known.items()}
    found = []
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        name, verify = rng.choice(sorted(known)), rng.choice(["full", "full", "bounds"])
        change: Callable[[Path, random.Random], str] = rng.choice([damage, craft])
        store = folder / "changed"
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(folder / name, store)
        what = f"{name}, {verify}, {change.__name__}: {change(store, rng)}"
        is_told = change is damage and verify == "full"  # others may give another result
        print(what, file=sys.stderr)
        found.append((_outcome(store, verify, known[name][1], right[name], is_told=is_told), what))
    return found


def _outcome(store: Path, verify: Any, programs: Programs, right: list[Any], *, is_told: bool) -> str:
    try:
        found = results(open_store(store, verify=verify), programs)
    except SigpsError:
        return "refused"
    except Exception as error:
        return f"FAILED with {error!r}"
    if repr(found) == repr(right):
        return "right"
    return "WRONG" if is_told else "another result"


def main(seed: int, count: int) -> int:
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        found = outcomes(Path(folder), seed, count)
    for outcome, what in found:
        if outcome[0].isupper():
            print(f"{outcome}: {what}")
    kinds = Counter((what.split(": ")[0].partition(", ")[2], outcome.split()[0]) for outcome, what in found)
    print(*(f"{number} {kind}: {outcome}" for (kind, outcome), number in sorted(kinds.items())), sep="\n")
    return int(any(outcome[0].isupper() for outcome, _ in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
