"""Times what the branch adds, beside what runs did before, in one process; results are compared.

    python measure.py directed|listed|folders FOLDER [SCALE]

TRIAL=1 runs it without a GPU, by the stand-in of the tests.
"""

import os
import sys
import time

import numpy as np

import sigps
from sigps.apps import BFS, SSSP, LabelPropagation, PageRank

if os.environ.get("TRIAL"):
    sys.path.insert(0, "tests/support")
    import host_gpu
    import pytest

    host_gpu.use_host_as_gpu(pytest.MonkeyPatch())


def table(name, program, folders, ways, field, supersteps=1000, repeats=3):
    expected = None
    for way, options in ways.items():
        graph = sigps.load(folders)
        try:
            began = time.perf_counter()
            found = sigps.run(program, graph, device="cuda", stream="always", max_supersteps=supersteps, **options)
            first = time.perf_counter() - began
            seconds, read = [], 0
            for _ in range(repeats):
                began = time.perf_counter()
                found = sigps.run(
                    program, graph, device="cuda", stream="always", max_supersteps=supersteps, **options
                )
                np.asarray(found[field])
                seconds.append(time.perf_counter() - began)
                read = sum(s.bytes_read for s in found.stats)
        except sigps.SigpsError as error:
            print(f"{name:<28} {way:<22} {type(error).__name__}: {str(error)[:160]}", flush=True)
            continue
        values = np.asarray(found[field]).astype(np.float64)
        expected = values if expected is None else expected
        same = np.allclose(values, expected, rtol=1e-6, equal_nan=True)
        row = f"first {first:7.2f} s, then {min(seconds) * 1e3:9.1f} ms, {len(found.stats):4d} supersteps"
        unpacked = "unpacked" if graph.is_laid_out else "packed"
        print(f"{name:<28} {way:<22} {row}, read {read / 1e9:7.3f} GB, {unpacked}, same: {same}", flush=True)


def store(folder, name, make, order):
    path = os.path.join(folder, f"{name}-{order}")
    if not os.path.exists(path):
        graph = make()
        graph.save(path, packed=True, order=order)
    return path


def main():
    what, folder = sys.argv[1:3]
    scale = int(sys.argv[3]) if len(sys.argv) > 3 else 22
    os.makedirs(folder, exist_ok=True)
    if what == "directed":
        ways = {"as before, unpacked": {}, "packed, heads": {"host_memory": "64GB"}, "all pages": {"transfer": "bulk"}}
        graphs = {f"rmat-{scale}": lambda: sigps.generate("rmat", scale=scale, seed=1, directed=True, weights="random")}
        web = f"{os.environ.get('GPU_DATA', '')}/plain/cnr-2000"
        found = [web + end for end in ("", ".txt", ".graph", ".el") if os.path.isfile(web + end)]
        if found:
            graphs["cnr-2000"] = lambda: sigps.load(found[0], directed=True)
        for name, make in graphs.items():
            path = store(folder, name, make, "given")
            graph = sigps.load(path)
            source = int(np.asarray(graph.ids)[int(graph.out_degrees().argmax())])
            table(f"BFS {name}", BFS(source=source), path, ways, "level")
            if "weight" in graph.columns:
                table(f"SSSP {name}", SSSP(source=source), path, ways, "distance", repeats=1)
    elif what == "listed":
        ways = {"as before, unpacked": {"transfer": "rows"}, "packed": {"transfer": "bulk"}, "packed, 1/2 kept": {}}
        path = store(folder, f"kron-{scale}", lambda: sigps.generate("rmat", scale=scale, seed=1), "given")
        size = sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))
        ways["packed, 1/2 kept"] = {"transfer": "bulk", "device_memory": max(1 << 28, 3 << 29, size // 2 + (1 << 30))}
        table(f"labels kron-{scale}", LabelPropagation(), path, ways, "label", supersteps=5, repeats=2)
    elif what == "folders":
        graph = sigps.generate("rmat", scale=scale, seed=1)
        one = os.path.join(folder, "one")
        several = [os.path.join(folder, f"part{i}") for i in range(3)]
        began = time.perf_counter()
        graph.save(one, packed=True, order="degree")
        between = time.perf_counter()
        graph.save(several, packed=True, order="degree")
        print(f"written: one folder {between - began:.2f} s, three {time.perf_counter() - between:.2f} s", flush=True)
        del graph
        packed = sum(os.path.getsize(os.path.join(one, name)) for name in os.listdir(one))
        ways = {
            "all on the host": {},
            "from disk, half": {"host_memory": packed // 2},
            "from disk": {"host_memory": max(packed // 8, 2048)},
        }
        for name, path in (("one folder", one), ("three folders", several), ("one folder", one)):
            table(f"PageRank {name}", PageRank(iterations=5), path, ways, "rank", repeats=2)


main()
