"""What the host does of a batch of a million inserts, by how many parts its arrays have at most: ms, medians of 15."""

import statistics
import time

import numpy as np

from sigps.device import shared_copies
from sigps.device.shared_copies import copying, fresh, in_parts
from sigps.graph.versions.batch import as_changes
from sigps.graph.versions.taking import take_gids, take_numbers

n, rng = 1_000_000, np.random.default_rng(1)
types = {"weight": np.dtype(np.float32)}
batches = [(*rng.integers(0, 1 << 22, (2, n)), rng.integers(1, 256, n)) for _ in range(16)]
pinned = np.zeros(12 * n, np.uint8)
try:
    print("HOST pages", *(open(f"/sys/kernel/mm/transparent_hugepage/{name}").read().strip() for name in ("enabled", "defrag")))
except OSError as error:
    print("HOST pages", error)
for most, large in ((1, 21), (3, 21), (6, 21), (10, 21), (15, 21), (24, 21), (48, 21), (10, 60)):
    shared_copies._LEAST, shared_copies._MOST_PARTS, shared_copies._LARGE = 1 << 14, most, 1 << large
    times, kept = {}, []

    def timed(what, work, *given):
        began = time.perf_counter()
        found = work(*given)
        times.setdefault(what, []).append((time.perf_counter() - began) * 1e3)
        return found

    for batch in batches:
        changes = timed("as_changes", lambda: as_changes(batch, "inserts", types, casts=False))
        places = [pinned[4 * n * i : 4 * n * (i + 1)].view(t) for i, t in enumerate((np.uint32, np.uint32, np.float32))]
        work = [take_gids(changes.sources, 1 << 22, places[0]), take_gids(changes.targets, 1 << 22, places[1])]
        assert all(timed("take", lambda: in_parts(*work, take_numbers(changes.columns["weight"], places[2]))))
        mine = [fresh(n, a.dtype) for a in places]
        timed("keep", lambda: in_parts(*(copying(*pair) for pair in zip(mine, places))))
        kept.append(mine)
    print("HOST parts", most, "large pages" if large == 21 else "small pages", {k: round(statistics.median(v[1:]), 3) for k, v in times.items()}, flush=True)
