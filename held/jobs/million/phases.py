"""Where batches of a stream on kron-22 spend their time: on the host, on the device, and each phase of edit_rows."""

import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import BFS, SSSP
from sigps.device import linking
from sigps.device.cuda import Module
from sigps.engine.gpu import following
from sigps.graph import later

label, scale, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
began_all = time.perf_counter()
later._SHARE = 1  # no version of the host is asked for
STAMPS = 64


def with_stamps(text: str) -> tuple[str, list[str]]:
    """Return live.cu where the first thread notes the time behind each barrier of edit_rows, and what came before."""
    a = text.index("    edit_rows(const __grid_constant__ Batch batch) {")
    b = text.index("\n}\n", a)
    names, last, out = ["begin"], 0, ""
    body = text[a:b]
    for m in re.finditer(r"wait_for_all\(&counts->barrier, generation\);|on_all_sides\(batch, generation,.*?\}\);", body, re.S):
        called = [c for c in re.findall(r"(\w+)\(batch", body[last : m.end()]) if c != "on_all_sides"]
        out += body[last : m.end()] + f" note_time(batch, {len(names)});"
        names.append("+".join(dict.fromkeys(called)))
        last = m.end()
    called = re.findall(r"(\w+)\(batch", body[last:])
    out += body[last:]
    out = out.replace("  LiveCounts *counts = batch.counts;\n", "  LiveCounts *counts = batch.counts;\n  note_time(batch, 0);\n", 1)
    names.append("+".join(dict.fromkeys(called)))
    helper = '''
extern "C" { __device__ unsigned long long *stamps; }
__device__ inline void note_time(const Batch &batch, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t) :: "memory");
    stamps[n] = t;
  }
}
'''
    k = text.rindex("// Changes rows as a batch says", 0, a)
    return text[:k] + helper + text[k:a] + out + text[b:], names


def stamped_kernel(macros, arch, per_lane=0):
    folder = Path(following.__file__).parents[2] / "kernels" / "cuda"
    if per_lane:
        copy = Path(tempfile.mkdtemp()) / "cuda"
        shutil.copytree(folder, copy)
        header = (copy / "changing_rows.cuh").read_text()
        changed = re.sub(r"PER_LANE = \d+;", f"PER_LANE = {per_lane};", header)
        assert "PER_LANE = " in header
        (copy / "changing_rows.cuh").write_text(changed)
        folder = copy
    text, names = with_stamps((folder / "live.cu").read_text())
    compiled = linking.compile_source(text, "live.cu", arch, macros, folder)
    return linking.link_modules([compiled], arch), names


if label == "compile":
    for of in (("float64", "float32", True, True, True, 0), ("uint32", "uint8", True, False, False, 1)):
        cubin, names = stamped_kernel(following.live_macros(*of), "sm_90")
        print(len(cubin), names)
        if "after" in sys.argv:
            print(len(stamped_kernel(following.live_macros(*of), "sm_90", 2)[0]))
    raise SystemExit

import cupy


def show(what, **values):
    print(label, what, *(f"{k} {v}" for k, v in values.items()), flush=True)


class Timed:
    """A kernel whose launches are timed by events."""

    def __init__(self, kernel):
        self.kernel, self.events = kernel, []

    def launch(self, *given, **options):
        pair = cupy.cuda.Event(), cupy.cuda.Event()
        pair[0].record()
        self.kernel.launch(*given, **options)
        pair[1].record()
        self.events.append(pair)

    def milliseconds(self):
        cupy.cuda.get_current_stream().synchronize()
        found = [cupy.cuda.get_elapsed_time(*pair) for pair in self.events]
        self.events = []
        return found


def ms(seconds):
    return round(statistics.median(seconds[1:]) * 1e3, 3)


def measure(program, graph, name, sizes, repeats):
    ids, offsets, targets = np.asarray(graph.ids), graph.offsets, graph.targets
    numbers = np.random.default_rng(1)

    def draw(size, kind):
        ends = ids[numbers.integers(0, ids.size, (2, size))]
        at = numbers.integers(0, targets.size, size)
        deletes = ids[np.searchsorted(offsets, at, side="right") - 1], ids[targets[at]]
        weights = (numbers.integers(1, 256, size),) if "weight" in graph.column_types() else ()
        inserts = *ends, *weights
        return (None if kind == "deletes" else inserts), (None if kind == "inserts" else deletes)

    began = time.perf_counter()
    with sigps.stream(program, graph, device="cuda") as live:
        live.apply()
        show(name, stream_s=round(time.perf_counter() - began, 1))
        run = live._live
        engine, batches = run._engine, run._engine._batches
        take, follow, marks = run.laid_by, run.follow_ends, {}
        plain = engine._kernels["edit_rows"]
        timed = Timed(plain)
        copies = []
        copy = batches._copy

        def copied(num_bytes):
            pair = cupy.cuda.Event(), cupy.cuda.Event()
            pair[0].record()
            copy(num_bytes)
            pair[1].record()
            copies.append((pair, num_bytes))

        def begin(*of):
            marks["begin"] = time.perf_counter()
            found = take(*of)
            marks["laid"] = time.perf_counter()
            return found

        def end(*of):
            found = follow(*of)
            marks["sent"] = time.perf_counter()
            cupy.cuda.get_current_stream().synchronize()
            marks["rows"] = time.perf_counter()
            return found

        run.laid_by, run.follow_ends, batches._copy = begin, end, copied
        for size in sizes:
            for kind in ("inserts", "deletes", "both"):
                if time.perf_counter() - began_all > seconds:
                    show("out of time")
                    return
                engine._kernels["edit_rows"] = timed
                parts = {k: [] for k in ("all", "rows", "laid_by", "send", "device", "h2d")}
                for _ in range(repeats if size >= 100_000 else 2 * repeats):
                    inserts, deletes = draw(size, kind)
                    began = time.perf_counter()
                    live.apply(inserts=inserts, deletes=deletes)
                    cupy.cuda.get_current_stream().synchronize()
                    parts["all"].append(time.perf_counter() - began)
                    parts["rows"].append(marks["rows"] - marks["begin"])
                    parts["laid_by"].append(marks["laid"] - marks["begin"])
                    parts["send"].append(marks["sent"] - marks["laid"])
                    parts["device"].append(sum(timed.milliseconds()) / 1e3)
                    parts["h2d"].append(sum(cupy.cuda.get_elapsed_time(*pair) for pair, _ in copies) / 1e3)
                    num_bytes = sum(n for _, n in copies)
                    copies.clear()
                show(name, batch=size, kind=kind, **{k: ms(v) for k, v in parts.items()}, all_max=round(max(parts["all"][1:]) * 1e3, 1), all_sum_of=len(parts["all"]) - 1, all_mean=round(statistics.mean(parts["all"][1:]) * 1e3, 2), sent_bytes=num_bytes)
        graph_, native = engine._engine._graph, engine._native
        column = engine._column is not None
        weight = graph_.incoming.column(engine._column).dtype.name if column else "uint8"
        of = engine._key_type, weight, engine._takes_min, column, engine._adds, engine._num_ordered
        for per_lane in (0,):
            cubin, names = stamped_kernel(following.live_macros(*of), native.gpu.arch, per_lane)
            module = Module(cubin)
            stamps = cupy.zeros(STAMPS, cupy.uint64)
            module.set_address("stamps", stamps.data.ptr)
            kernel = module.kernel("edit_rows")
            for size in sizes:
                for kind in ("inserts", "deletes", "both"):
                    if time.perf_counter() - began_all > seconds:
                        show("out of time")
                        return
                    timed.kernel = kernel
                    found = []
                    for _ in range(4):
                        stamps[:] = 0
                        inserts, deletes = draw(size, kind)
                        live.apply(inserts=inserts, deletes=deletes)
                        found.append((cupy.asnumpy(stamps).astype(np.int64), timed.milliseconds()))
                    text, before, whole = [], None, found[-1][1]
                    at = {i: [f[0][i] for f in found[1:]] for i in range(len(names))}
                    first = np.array(at[0])
                    last = first
                    for i in range(1, len(names)):
                        if min(at[i]) > 0:
                            now = np.array(at[i])
                            text.append(f"{names[i]}={np.median(now - last) / 1e6:.3f}")
                            last = now
                    rest = np.median([sum(f[1]) for f in found[1:]]) - np.median(last - first) / 1e6
                    print(label, name, "PHASES", f"per lane {per_lane}" if per_lane else "", size, kind, *text, f"rest={rest:.3f}", f"kernel={sum(whole):.3f}", flush=True)


began = time.perf_counter()
graph = sigps.generate("rmat", scale=scale, weights="random")
show("graph", seconds=round(time.perf_counter() - began, 1), edges=graph.num_edges)
source = int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
measure(SSSP(source=source), graph, "SSSP", [*map(int, sys.argv[4:])] or [1, 1000, 100_000, 1_000_000], 5)
if time.perf_counter() - began_all < seconds:
    measure(BFS(source=source), graph, "BFS", [*map(int, sys.argv[4:])] or [1000, 100_000], 4)
