"""Full runs of a stream on a GPU, and what a batch takes, by whether rows ascend and who reads short ones.

    python order.py 22

Before: rows in any order (BFS reads all of each), and a warp for each. Prints a table for BFS, then for WCC and SSSP in
full: only the last column of ways concerns them.
"""

import dataclasses
import os
import statistics
import sys
import time

import numpy as np

if os.environ.get("ON_HOST"):  # a proof of this script without a GPU
    import host_gpu
    import pytest
    from host_kernels import host_kernels

    patch = pytest.MonkeyPatch()
    host_gpu.use_host_as_gpu(patch)
    from sigps.engine.gpu import following as _following

    patch.setattr(_following, "_kernels", lambda gpu, *of: host_kernels("live", _following.live_macros(*of)))
else:
    from sigps.engine.gpu import following as _following

import cupy

import sigps
from sigps.apps import BFS, SSSP, WCC
from sigps.compiler.program import EarlyExit
from sigps.engine.gpu import layout

scale = int(sys.argv[1])
repeats = 9
plain_init = _following.GpuFollowingEngine.__init__


def reading_all(self, native, *rest, **more):
    program = dataclasses.replace(
        native.program, early_exit=EarlyExit.NEVER, key=f"{native.program.key} reads all"
    )
    plain_init(self, dataclasses.replace(native, program=program), *rest, **more)


def wait():
    if not os.environ.get("ON_HOST"):
        cupy.cuda.runtime.deviceSynchronize()


def ms(work, n=repeats):
    found = []
    for _ in range(n):
        wait()
        began = time.perf_counter()
        work()
        wait()
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found[1:]), min(found[1:])


began = time.perf_counter()
graph = sigps.generate("rmat", scale=scale, weights="random")
n, hub = graph.num_vertices, int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
offsets, targets = np.asarray(graph.offsets).astype(np.int64), graph.targets
print(f"kron-{scale}: {time.perf_counter() - began:.0f} s to draw; source {hub}", flush=True)


def batches(kind, size, seed):
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, n, (2, size))
    at = draw.integers(0, targets.size, size)
    old = np.searchsorted(offsets, at, side="right") - 1, np.asarray(targets[at])
    inserts = (*ends, draw.integers(1, 256, size).astype(float)) if kind != "deletes" else None
    return inserts, old if kind != "inserts" else None


def follow(program, names, is_ordered, thread_degree, kinds):
    """Return a row: ms of full runs and of batches; and the stream's last result and version."""
    _following.GpuFollowingEngine.__init__ = plain_init if is_ordered else reading_all
    layout.THREAD_DEGREE = thread_degree
    row = {}
    with sigps.stream(program, graph, device="cuda", guard="full", asynchronous=False) as stream:
        assert stream._live is not None, stream._why
        engine = stream._live._engine
        row["full, fresh rows"] = "%.2f (%.2f)" % ms(engine.run)
        for kind, size in kinds:
            edits = []
            for k in range(repeats):
                inserts, deletes = batches(kind, size, 100 * size + k)
                plain = engine._edit

                def timed(plain=plain):
                    wait()
                    began = time.perf_counter()
                    plain()
                    wait()
                    edits.append((time.perf_counter() - began) * 1e3)

                engine._edit = timed
                result = stream.apply(inserts=inserts, deletes=deletes)
                del engine._edit
            row[f"rows, {size:,} {kind}"] = "%.3f" % statistics.median(edits[1:])
        row["full, after"] = "%.2f (%.2f)" % ms(engine.run)
        found = {name: np.asarray(result[name]) for name in names}
        return row, found, stream.graph


def table(title, rows):
    columns = list(next(iter(rows.values())))
    print(f"\n== {title}; ms, medians (least)\n" + " | ".join(["way", *columns]))
    for way, row in rows.items():
        print(" | ".join([way, *(row[c] for c in columns)]), flush=True)


BATCHES = [("inserts", 1), ("deletes", 1), ("inserts", 1000), ("deletes", 1000), ("both", 100_000)]
if os.environ.get("ON_HOST"):
    BATCHES = [("inserts", 1), ("both", 10)]
rows, results = {}, {}
for way, is_ordered, degree in [
    ("before: any order, warps", False, 0),
    ("ascending, warps", True, 0),
    ("ascending, threads to 16", True, 16),
    ("ascending, threads to 64", True, 64),
    ("ascending, threads to 192", True, 192),
    ("any order, threads to 64", False, 64),
]:
    rows[way], results[way], newest = follow(BFS(source=hub), ("level", "parent"), is_ordered, degree, BATCHES)
    print(way, rows[way], flush=True)
table(f"BFS, kron-{scale}", rows)
first = next(iter(results.values()))
for way, found in results.items():
    same = all(np.array_equal(found[k], first[k]) for k in first)
    print(f"{way}: results {'equal' if same else 'DIFFER'}")
began = time.perf_counter()
fresh = sigps.run(BFS(source=hub), newest, device="cuda")
laid = time.perf_counter() - began
same = all(np.array_equal(np.asarray(fresh[k]), first[k]) for k in first)
median, least = ms(lambda: sigps.run(BFS(source=hub), newest, device="cuda"))
print(f"sigps.run on the newest version: {median:.2f} ({least:.2f}) ms; laid out anew in {laid:.1f} s; equal: {same}")
for program, name in ((WCC(), "component"), (SSSP(source=hub), "distance")):
    rows = {}
    for way, degree in (("warps", 0), ("threads to 16", 16), ("threads to 64", 64)):
        rows[way], *_ = follow(program, (name,), True, degree, [("inserts", 1000)])
    table(f"{type(program).__name__}, full runs", rows)
