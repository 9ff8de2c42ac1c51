"""What fields that leave take, results while they leave read by another thread, and the limits of aggregators."""

import threading
import time

import numpy as np

import sigps
from sigps import Aggregator, State, Vector, Vertex
from sigps.apps import WCC, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.choice import most_totals

graph = sigps.generate("rmat", scale=20)
expected = np.asarray(sigps.run(WCC(), graph, device="cpu")["component"])
limit = 26 * graph.num_edges + (96 << 20)
given = {"device": "cuda", "stream": "never", "device_memory": limit}
sigps.run(WCC(), graph, **given)
held, wrong, stop = [], [], threading.Event()


def read() -> None:
    while not stop.is_set():
        for found in list(held):
            if not np.array_equal(np.asarray(found.to_cupy("component").get()), expected):
                wrong.append("to_cupy")
            fields = found._fields.again()
            if not np.array_equal(np.asarray(fields["component"]), expected):
                wrong.append("again")


reader = threading.Thread(target=read)
reader.start()
seconds = []
refused = 0
for _ in range(80):
    began = time.perf_counter()
    try:
        held.append(sigps.run(WCC(), graph, **given))
    except sigps.DeviceError as error:  # the reader has arrays of its own on the GPU, which count
        refused += 1
        last = error
    seconds.append(time.perf_counter() - began)
stop.set()
reader.join()
print("runs beside a reader:", len(held), "refused:", refused, "wrong:", wrong)
if refused:
    print(last)
print("median ms", 1e3 * float(np.median(seconds)), "max ms", 1e3 * max(seconds))
on_host = sum(found._fields._held.places.is_on_host for found in held)
print("results on the host:", on_host, "of", len(held))
assert not wrong
del held

# Warm runs under a limit that is not tight: what CuPy keeps stays.
wide = {"device": "cuda", "stream": "never", "device_memory": "20GB"}
for options in (wide, {"device": "cuda", "stream": "never"}):
    sigps.run(PageRank(iterations=1), graph, **options)
    times = []
    for _ in range(30):
        began = time.perf_counter()
        sigps.run(PageRank(iterations=1), graph, **options)
        times.append(time.perf_counter() - began)
    print(options.get("device_memory"), "warm run, median ms", 1e3 * float(np.median(times)))


def sums(count: int) -> Vertex:
    class Sums(Vertex, message=int):
        got: State[int] = 0
        wide = Aggregator.sum(Vector[int, count])

        def compute(self, messages):
            self.wide[self.id % count] += 1
            self.got += sum(messages)
            if self.superstep < 3:
                for edge in self.out_edges:
                    self.send(edge, 1)
            self.vote_to_halt()

    return Sums()


most = most_totals(analyse(sums(1))) // 8
small = sigps.generate("grid", rows=30, columns=30)
one, other = (sigps.run(sums(most), small, device=d) for d in ("cuda", "cpu"))
assert np.array_equal(one["got"], other["got"])
assert np.array_equal(one.aggregators["wide"], other.aggregators["wide"])
print("aggregators of", 8 * most, "bytes: equal")
