"""Draw packed stores; what the disk reads; and PageRank and BFS with a part of the pages on disk, system cache dropped."""

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np


def draw(folder, *scales):
    from sigps.device.cuda import find_gpu
    from sigps.graph.generators.drawn_store import write_drawn
    from sigps.graph.generators.generate import edge_stream

    Path(folder).mkdir(exist_ok=True)
    for scale in scales:
        begin = time.perf_counter()
        write_drawn(edge_stream("rmat", scale=int(scale), seed=1), Path(folder) / scale, find_gpu())
        print(f"kron-{scale} drawn and packed in {time.perf_counter() - begin:.1f} s", flush=True)


def drop(store):
    """Let the system forget the files of a store."""
    os.sync()
    for path in Path(store).iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def rate(store):
    """Print what threads read of the file of pages, 4 MiB at a time, with and without O_DIRECT."""
    path = Path(store) / "pages.bin"
    size, step = path.stat().st_size // (1 << 22), 1 << 22
    best = 0
    for direct in (False, True):
        for count in (1, 4, 16):
            drop(store)
            try:
                file = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
            except OSError as error:
                print("O_DIRECT", error)
                break

            def work(first):
                import mmap

                room = mmap.mmap(-1, step)
                for i in range(first, size, count):
                    os.preadv(file, [room], i * step)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
            begin = time.perf_counter()
            [t.start() for t in threads]
            [t.join() for t in threads]
            found = size * step / (time.perf_counter() - begin) / 1e9
            best = max(best, found)
            print(f"{'O_DIRECT' if direct else 'buffered'} {count} threads: {found:.2f} GB/s", flush=True)
            os.close(file)
    print(f"best {best:.2f} GB/s")


def run(store):
    import sigps
    from sigps.apps import BFS, PageRank

    graph = sigps.load(store, verify="none")
    size = graph.packed.rows.words.nbytes
    sums = {}
    for program, seconds in ((PageRank(iterations=6), 0.2), (PageRank(iterations=6), 1.0), (PageRank(iterations=6), 3.0), (BFS(source=2), 0.2)):
        for share in (None, 0.5, 0.0):
            limit = None if share is None else int(share * size) + (160 << 20)
            if limit is not None and limit > size:
                print("the store is no larger than the limit")
                continue
            more = {"precision": "single", "transfer": "bulk"} if isinstance(program, PageRank) else {}
            dropper = Dropper(store, seconds)
            with dropper:  # so that no page is read twice from the system's cache
                begin = time.perf_counter()
                found = sigps.run(program, graph, device="cuda", stream="always", host_memory=limit, **more)
                whole = time.perf_counter() - begin
            steps = [s for s in found.stats if s.bytes_read][1:]
            took = float(np.median([s.seconds for s in steps]))
            fed = max(0, size - (limit or size)) + (0 if limit is None else (64 << 20))
            name = type(program).__name__
            field = np.asarray(found["rank" if name == "PageRank" else "level"])
            same = np.allclose(sums.setdefault(name, field), field, rtol=1e-4)
            print(
                f"{Path(store).name} {name} host_memory {limit}: dropped every {seconds} s: superstep {1e3 * took:.1f} ms, "
                f"{steps[0].bytes_read / took / 1e9:.2f} GB/s in all, about {fed / took / 1e9:.2f} GB/s from disk, "
                f"run {whole:.1f} s, {len(found.stats)} supersteps, same as in memory: {same}",
                flush=True,
            )
            del found
            graph = sigps.load(store, verify="none")  # without pages on the device


class Dropper:
    """Drops the system's cache of a store's files now and then."""

    def __init__(self, store, seconds):
        self._seconds = seconds
        self._store, self._stops = store, threading.Event()

    def __enter__(self):
        drop(self._store)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        while not self._stops.wait(self._seconds):
            for path in Path(self._store).iterdir():
                file = os.open(path, os.O_RDONLY)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)

    def __exit__(self, *_):
        self._stops.set()
        self._thread.join()


{"draw": draw, "rate": rate, "run": run}[sys.argv[1]](*sys.argv[2:])
