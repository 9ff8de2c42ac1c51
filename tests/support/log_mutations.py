"""State logs that were damaged or crafted, and gone on from: `python log_mutations.py SEED COUNT` says how that ended.

As with stores (`store_mutations`): a damaged log is not used, or gives the right results; one that was crafted, with
right checksums, is not used, or gives some result or an error of sigps.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import random
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from edge_programs import Returns
from send_programs import TwoSends
from store_mutations import damage

from sigps import Checkpoint, Graph, Result, SigpsError, Vertex, run
from sigps.apps import CDLP, PageRank
from sigps.system.checkpoint.files import find_logs

MAGIC = b"sigps state log\n"


def change_manifest(log: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what a log's manifest says, in place, and make its checksum right again."""
    path = log / "manifest.msgpack"
    version, _, body = msgpack.unpackb(path.read_bytes()[len(MAGIC) :])
    manifest = msgpack.unpackb(body)
    change(manifest)
    body = msgpack.packb(manifest)
    path.write_bytes(MAGIC + msgpack.packb([version, zlib.crc32(body), body]))


def change_part(log: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the arrays of a log's first part, by name, and make all checksums right again."""
    path = log / "part-00000.npz"
    with np.load(path) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(path, **arrays)
    described = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(described) as file:
        crcs = {info.filename: info.CRC for info in file.infolist()}

    def describe(manifest: dict[str, Any]) -> None:
        manifest["parts"][0] = {"bytes": path.stat().st_size, "crcs": crcs}
        for name, array in arrays.items():
            if array.ndim:
                manifest["dtypes"][name] = f"{array.shape[1:] if array.ndim > 1 else ''}{array.dtype.str}"

    change_manifest(log, describe)


def craft(log: Path, rng: random.Random) -> str:
    """Change a log and make its checksums right again; return what was done."""
    if rng.random() < 0.4:
        return _craft_manifest(log, rng)
    said = []

    def change(arrays: dict[str, Any]) -> None:
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        way = rng.choice(
            ["value", "value", "value", "shuffled", "shorter", "other type", "2-D", "scalar", "gone"]
        )
        if way == "value" and array.size:
            raw = array.reshape(-1).view(f"u{array.itemsize}")
            bits = rng.choice([rng.getrandbits(64), 2**63, 2**64 - 1, 2**31, 35, 36, rng.randrange(36)])
            raw[rng.randrange(raw.size)] = bits % 2 ** (8 * array.itemsize)
        elif way == "shuffled":
            rng.shuffle(array)
        elif way == "shorter":
            arrays[name] = array[:-1]
        elif way == "other type":
            arrays[name] = array.astype(rng.choice(["<i8", "<f8", "|u1", "<f4"]))
        elif way == "2-D":
            arrays[name] = np.stack([array, array], axis=-1)
        elif way == "scalar":
            arrays[name] = np.zeros((), array.dtype)
        elif way == "gone":
            del arrays[name]
        said.append(f"{way} of {name}")

    change_part(log, change)
    return said[0]


def _craft_manifest(log: Path, rng: random.Random) -> str:
    said = []

    def change(manifest: dict[str, Any]) -> None:
        key = rng.choice(sorted(manifest))
        wrong = rng.choice(
            [0, 1, -1, 2**40, None, "records", "slots", "messages", [], {}, [[1]], 0.5, "9" * 40]
        )
        if key in ("dtypes", "aggregators") and manifest[key] and rng.random() < 0.7:
            inner = rng.choice(sorted(manifest[key]))
            manifest[key][inner] = rng.choice(["<f8", "<i8", "|O", "(2,)<f8", "<f4", None, [1, 2]])
            said.append(f"{inner} of {key}")
            return
        if key == "in_flight":
            wrong = rng.choice(["records", "slots", "messages"])
            if rng.random() < 0.5:  # thoroughly
                _rename_in_flight(manifest, wrong)
        manifest[key] = wrong
        said.append(f"{key} of the manifest {wrong!r}")

    change_manifest(log, change)
    return said[0]


def _rename_in_flight(manifest: dict[str, Any], kind: Any) -> None:
    old = manifest["in_flight"]
    manifest["dtypes"] = {name.replace(old, kind, 1): dtype for name, dtype in manifest["dtypes"].items()}
    for part in manifest["parts"]:
        part["crcs"] = {name.replace(old, kind, 1): crc for name, crc in part["crcs"].items()}


PROGRAMS: dict[str, Callable[[], Vertex]] = {
    "PageRank": lambda: PageRank(iterations=6),
    "CDLP": lambda: CDLP(iterations=6),
    "TwoSends": TwoSends,
    "Returns": Returns,
}


def go(graph: Graph, program: Vertex, folder: Path, device: str, **options: Any) -> Result:
    checkpoint = Checkpoint(folder, every=2)
    return run(program, graph, device=device, threads=1, checkpoint=checkpoint, deterministic=True, **options)


def outcomes(folder: Path, seed: int, count: int) -> list[tuple[str, str]]:
    """Return how going on from each of `count` changed logs ended, and what was changed."""
    rng = np.random.default_rng(3)
    graph = Graph.from_edges(
        *rng.integers(0, 36, (2, 150)), directed=False, duplicates="drop", self_loops="drop"
    )
    ends = {name: _begin(graph, make(), folder / name) for name, make in PROGRAMS.items()}
    found = []
    for i in range(count):
        drawn = random.Random(f"{seed} {i}")
        name, change = drawn.choice(sorted(PROGRAMS)), drawn.choice([damage, craft])
        device = drawn.choice(["cpu", "cpu", "python"])
        shutil.rmtree(folder / "changed", ignore_errors=True)
        shutil.copytree(folder / name, folder / "changed")
        (log,) = find_logs(folder / "changed")
        what = f"{change.__name__} {name} on {device}: {change(log, drawn)}"
        print(what, file=sys.stderr)
        outcome = _outcome(graph, PROGRAMS[name](), folder / "changed", device, ends[name])
        if change is craft and outcome == "WRONG":
            outcome = "another result"
        found.append((outcome, what))
    return found


def _begin(graph: Graph, program: Vertex, folder: Path) -> str:
    """Leave one log of superstep 2; return what a whole run comes to."""
    go(graph, program, folder, "cpu", max_supersteps=2)
    return _said(go(graph, program, folder.with_name(f"{folder.name}-whole"), "cpu", max_supersteps=12))


def _said(result: Result) -> str:
    return repr([result[name].tolist() for name in result.fields])


def _outcome(graph: Graph, program: Vertex, folder: Path, device: str, right: str) -> str:
    try:
        found = _said(go(graph, program, folder, device, resume=True, max_supersteps=12))
    except SigpsError:
        return "refused"
    except Exception as error:
        return f"FAILED with {error!r}"
    return "right" if found == right else "WRONG"


def main(seed: int, count: int) -> int:
    faulthandler.enable()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        found = outcomes(Path(folder), seed, count)
    for outcome, what in found:
        if outcome[0].isupper():
            print(f"{outcome}: {what}")
    kinds = Counter((what.split()[0], outcome.split()[0]) for outcome, what in found)
    print(*(f"{number} {kind}: {outcome}" for (kind, outcome), number in sorted(kinds.items())), sep="\n")
    return int(any(outcome[0].isupper() for outcome, _ in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
