"""The time of a layout in tiles, whole and by its steps (each waits for the device); and in rows beside it."""

import sys
import time

import sigps
from sigps.apps import PageRank
from sigps.device.cuda import find_gpu
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import placement, tiles
from sigps.engine.gpu.tiles import TiledEdges

import cupy

SPENT: dict[str, float] = {}
TIMING = {"on": False}


def timed(name, call):
    def act(*given, **options):
        if not TIMING["on"]:
            return call(*given, **options)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        found = call(*given, **options)
        cupy.cuda.Device().synchronize()
        SPENT[name] = SPENT.get(name, 0.0) + time.perf_counter() - began
        return found

    return act


for name in ("_rename", "_find_pairs", "_find_slices", "_lay_out_rows", "_place_more"):
    if hasattr(TiledEdges, name):
        setattr(TiledEdges, name, timed(name, getattr(TiledEdges, name)))
for name in ("_make_keys", "count_pairs", "share_out", "send", "lay_out", "lay_out_slices", "_count_edges"):
    if hasattr(tiles, name):
        setattr(tiles, name, timed(name, getattr(tiles, name)))
TiledEdges.__init__ = timed("TiledEdges", TiledEdges.__init__)
gpu_graph.tiled_edges = timed("tiled_edges (with the sort of keys)", gpu_graph.tiled_edges)
gpu_graph.Numbering.__init__ = timed("Numbering", gpu_graph.Numbering.__init__)
made = gpu_graph.graph_on_gpu
WHOLE: list[float] = []


def noted(*given, **options):
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    found = made(*given, **options)
    cupy.cuda.Device().synchronize()
    WHOLE.append(time.perf_counter() - began)
    return found


placement.graph_on_gpu = noted


def lay_out(graph, precision, way):
    for _, subgraph in graph.derived("partitions", dict).values():
        gpu_graph.forget_on_gpu(subgraph, find_gpu())
    WHOLE.clear()
    result = sigps.run(PageRank(iterations=3), graph, device="cuda", precision=precision, tiles=way)
    return WHOLE[0] * 1e3, float(result["rank"].sum(dtype="float64"))


for scale in map(int, sys.argv[2:]):
    graph = sigps.generate("rmat", scale=scale)
    for precision in ("single", "double"):
        for way in ("never", "always"):
            times = [lay_out(graph, precision, way) for _ in range(4)][1:]
            print(f"| {sys.argv[1]} | kron-{scale} {precision} {way} | {min(t for t, _ in times):.1f} ms |"
                  f" sum {times[0][1]:.6f}", flush=True)
    SPENT.clear()
    TIMING["on"] = True
    whole, _ = lay_out(graph, "single", "always")
    TIMING["on"] = False
    print(f"  steps of kron-{scale}, single, ms of {whole:.1f} (TiledEdges and tiled_edges have the others in them):")
    for name, seconds in sorted(SPENT.items(), key=lambda item: -item[1]):
        print(f"    {name:40} {seconds * 1e3:8.1f}", flush=True)
