"""Draw recursive matrices, and run PageRank for the first time, on the ranks that there are.

    mpirun -n 2 python draw.py WHICH SCALES [DEVICE]     WHICH: a word for the table, "before" or "after"
"""

import sys
import time
import zlib

import sigps
from sigps.account import spent_since
from sigps.apps import PageRank
from sigps.group import world

group = world()
which, scales = sys.argv[1], [int(scale) for scale in sys.argv[2].split(",")]
device = sys.argv[3] if len(sys.argv) > 3 else "cuda"
how = "CPU" if group.size > 1 or device == "cpu" else "GPU"
if device == "cuda":
    import cupy  # noqa: F401  (counts as loaded)

    try:
        from sigps.graph.generators import on_gpus

        draw = on_gpus.draw_own_rows

        def told(*given, **options):
            made = draw(*given, **options)
            global how
            how = "own rows on GPUs" if made is not None else "NO ROOM: CPU"
            return made

        on_gpus.draw_own_rows = told
    except ImportError:  # before
        pass


def timed(work):
    group.barrier()
    began, before = time.perf_counter(), spent_since()
    made = work()
    group.barrier()
    spent = {line: round(seconds, 2) for line, seconds in spent_since(before).items() if seconds > 0.02}
    return time.perf_counter() - began, made, spent


for scale in scales:
    draws = []
    for _ in range(1 if which == "before" and group.size > 1 else 3):
        graph = None
        seconds, graph, spent = timed(lambda: sigps.generate("rmat", scale=scale, device=device))
        draws.append(seconds)
    first, result, run_spent = timed(
        lambda: sigps.run(PageRank(iterations=4), graph, device=device, precision="single", gather=False)
    )
    again, _, _ = timed(
        lambda: sigps.run(PageRank(iterations=4), graph, device=device, precision="single", gather=False)
    )
    sums = group.all_gather([graph.num_rows, zlib.crc32(graph.targets), zlib.crc32(graph.offsets)])
    counted = graph.report
    if group.rank == 0:
        print(
            f"| kron-{scale} | {which} | {group.size} ranks | {how} | drawn in {', '.join(f'{s:.2f}' for s in draws)} s"
            f" | PageRank first {first:.2f} s, again {again:.3f} |",
            flush=True,
        )
        print(f"    the last drawing: {spent}; the first run: {run_spent}", flush=True)
        print(
            f"    EQUAL? kron-{scale} on {group.size}: {counted.edges_given} given, {counted.edges_stored} stored,"
            f" {counted.duplicates} repeats, {counted.self_loops} loops, {counted.isolated} isolated,"
            f" rows and sums of ranks {sums}",
            flush=True,
        )
    del result
