"""The first answer of this process: PageRank in double precision of a text file, with the seconds of each part."""

import sys
import time

began = time.perf_counter()
kind, text = sys.argv[1:3]
device = sys.argv[3] if len(sys.argv) > 3 else "cuda"
import sigps  # noqa: E402
from sigps.account import process_age  # noqa: E402
from sigps.apps import PageRank  # noqa: E402

imported = time.perf_counter()
graph = sigps.load(text, format="snap", directed=True)
loaded = time.perf_counter()
result = sigps.run(PageRank(iterations=30), graph, device=device)
total = float(result["rank"].sum())
ended = time.perf_counter()
account = {line: round(s, 2) for line, s in result.account.items() if s > 0.005}
print(
    f"first answer, caches {kind}: {process_age():.2f} s from the process's start, {ended - began:.2f} from its first line "
    f"(import {imported - began:.2f}, text {loaded - imported:.2f}, run {ended - loaded:.2f}); ranks add up to {total:.6f}; run {account}"
)
