"""Links what labels.py runs, into the cache on disk, side by side; runs no kernel."""

import multiprocessing
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), "scripts/bench"]

WORKS = [
    *(("labels", name) for name in ("", "kept records", "ends ahead", "partials streamed", "rows alone")),
    *(("double", name) for name in ("", "kept records", "ends ahead")),
    *(("single", name) for name in ("", "kept records", "ends ahead")),
    *(("labels", name) for name in ("not unrolled", "one slice")),
]


def link_one(work):
    import kernel_variants
    from tiles import Spreading

    from sigps.apps import PageRank
    from sigps.compiler.cuda.compile import compile_for_cuda, link
    from sigps.compiler.frontend.analysis import analyse
    from sigps.engine.gpu import variant

    program, name = work
    began = time.monotonic()
    kernel_variants.use_kernels(name)
    made = Spreading() if program == "labels" else PageRank(iterations=12)
    analysed = analyse(made, "double" if program == "double" else "single")
    compiled = compile_for_cuda(analysed, {}, narrow_ids=True, arch="sm_90")
    *_, macros = variant._made_of(compiled, "sm_90", False, False, True)
    cubin = link(compiled, "lease", "sm_90", macros)
    return f"linked {program} {name or 'as it is'}: {len(cubin):,} bytes, {time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(int(sys.argv[1])) as pool:
        for told in pool.imap_unordered(link_one, WORKS):
            print(told, flush=True)
