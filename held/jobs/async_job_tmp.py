import os, sys, time
T0 = time.time()
sys.path[:0] = ["tests/support", "scripts/bench"]
from math import inf
import numpy as np
import sigps
from sigps import Graph, Param, State, Vertex, generate, run
from contractions import Rank
from sigps.engine.gpu import asynchronous as A, spec
from sigps.engine.gpu.asynchronous import BlockSchedule
LIMIT = float(sys.argv[1]); MODE = sys.argv[2]
def left(): return LIMIT - (time.time() - T0)
def show(*a): print(f"{time.time()-T0:5.1f}", *a, flush=True)
D = os.environ.get("GPU_DATA", "./data")
chosen = [BlockSchedule()]
spec.blocks_of = lambda context: chosen[0] if context.options.asynchronous is True else None

class Lengths(Vertex, message=float):
    source: Param[int] = 0
    best: State[float] = inf
    def compute(self, messages):
        received = (0.0 if self.id == self.source else inf) if self.superstep == 0 else min(messages, default=inf)
        if received < self.best:
            self.best = received
            for edge in self.out_edges:
                self.send(edge, self.best + edge.weight)
        self.vote_to_halt()

def timed(program, graph, mode, repeats=3):
    best = kern = inf
    for _ in range(repeats):
        t = time.perf_counter(); r = run(program, graph, device="cuda", asynchronous=mode); t = time.perf_counter() - t
        best = min(best, t); kern = min(kern, sum(s.seconds for s in r.stats))
    return r, best * 1e3, kern * 1e3

def drawn(seed, n):
    draw = np.random.default_rng(seed); ends = draw.integers(0, n, (2, 4 * n))
    if seed % 2: ends[0, :n] = 0; ends[1, n:2 * n] = 1
    return Graph.from_edges(*ends, weights=draw.random(4 * n) + 0.1, directed=seed % 3 == 0), int(ends[0, -1])

if MODE == "race":
    g, s = drawn(1, 1500)
    for sch in (BlockSchedule(6, 3, 2), BlockSchedule(6, 2, 0)):
        chosen[0] = sch
        a = run(Lengths(source=s), g, device="cuda", asynchronous=True); b = run(Rank(tolerance=1e-1), g, device="cuda", asynchronous=True)
        show(a.stats[-1].blocks, b.stats[-1].blocks)
    sys.exit()

def show_rank(name, g, tol, variants):
    r, ms, k = timed(Rank(tolerance=tol), g, False); exact = r["rank"]
    show(f"rank {name} bsp {ms:.2f} ms device {k:.2f} supersteps {len(r.stats)}")
    for given, bits, turns in variants:
        A.IN_GIVEN_ORDER = given; chosen[0] = BlockSchedule(bits, turns)
        r, m, kk = timed(Rank(tolerance=tol), g, True); e = r.stats[-1]
        show(f"rank {name} {'given' if given else 'degree'} bits {bits} turns {turns}: {m:.2f} ms ({m/ms:.2f}) async {e.seconds*1e3:.2f} ({kk/k:.2f}) loaded {e.block_edges/g.num_edges:.1f} read {e.messages/g.num_edges:.1f} err {abs(r['rank']-exact).max():.1e}")

def show_lengths(name, g, variants, source=0):
    p = Lengths(source=source); r, ms, k = timed(p, g, False, 2); want = r["best"]
    show(f"lengths {name} bsp {ms:.2f} ms device {k:.2f} supersteps {len(r.stats)} sweeps {sum(s.messages for s in r.stats)/g.num_edges:.1f}")
    for given, bits, turns in variants:
        A.IN_GIVEN_ORDER = given; chosen[0] = BlockSchedule(bits, turns)
        r, m, kk = timed(p, g, True, 2); e = r.stats[-1]
        show(f"lengths {name} {'given' if given else 'degree'} bits {bits} turns {turns}: {m:.2f} ms ({m/ms:.2f}) async {e.seconds*1e3:.2f} loaded {e.block_edges/g.num_edges:.1f} read {e.messages/g.num_edges:.1f} equal {np.array_equal(want, r['best'])}")

def real(g0):
    w = np.random.default_rng(3).random(g0.num_edges) + 0.1
    src = np.repeat(np.arange(g0.num_vertices), np.diff(np.asarray(g0.offsets).astype(np.int64)))
    return Graph.from_edges(src, np.asarray(g0.targets).astype(np.int64), weights=w, directed=True)

if MODE == "time":
    from concurrent.futures import ThreadPoolExecutor
    from sigps.compiler.cuda.compile import compile_for_cuda, link
    from sigps.compiler.frontend.analysis import analyse
    from sigps.device.cuda import find_gpu
    from sigps.engine.gpu.variant import _made_of
    gpu = find_gpu()
    def linked(p):
        c = compile_for_cuda(analyse(p, "double"), {"weight": np.dtype("f8")} if isinstance(p, Lengths) else {}, narrow_ids=True, arch=gpu.arch)
        with ThreadPoolExecutor(4) as inner:
            todo = [inner.submit(link, c, "asynchronous", gpu.arch, A.block_macros())]
            todo += [inner.submit(link, c, "lease", gpu.arch, _made_of(c, gpu.arch, False, False, t)[2]) for t in (False, True)[: 1 + isinstance(p, Rank)]]
            [t.result() for t in todo]
    with ThreadPoolExecutor(2) as outer: list(outer.map(linked, (Lengths(), Rank(tolerance=1.0))))
    show("linked")
for seed in range(3):
    g, s = drawn(seed, 2000)
    p = Lengths(source=s); want = run(p, g, device="cuda", asynchronous=False)["best"]; exact = run(Rank(tolerance=1e-12), g, device="cuda", asynchronous=False)["rank"]
    for k in range(1, 11):
        chosen[0] = BlockSchedule(5 + k % 4, 1 + 3 * (k % 5), k - 1)
        got = run(p, g, device="cuda", asynchronous=True)["best"]; assert np.array_equal(want, got), (seed, k)
        got = run(Rank(tolerance=1e-9), g, device="cuda", asynchronous=True)["rank"]; assert abs(got - exact).sum() <= 2000 * 1e-9 / 0.15, (seed, k)
show("equal: 3 graphs, 10 orders")
V = [(True, 10, 4), (True, 10, 1), (True, 9, 4), (False, 10, 4), (True, 10, 16)]
L = [(True, 10, 32), (True, 8, 32), (True, 10, 4), (False, 10, 32), (True, 12, 1000)]
grid = generate("grid", rows=1000, columns=1000)
show_lengths("grid-1000", real(grid), L)
show_rank("grid-1000", grid, 1e-6, V)
nd = sigps.load(f"{D}/web-NotreDame.txt.xz", directed=True)
show_rank("NotreDame", nd, 5e-5, V)
if left() > 12:
    ne = sigps.load(f"{D}/USA-road-NE.gr.xz", directed=False)
    show_lengths("NE", real(ne), L[:3]); show_rank("NE", ne, 1e-6, V[:4])
if left() > 6: show_rank("kron-18", generate("rmat", scale=18, directed=False), 1e-5, V[:2])
if left() > 6: show_rank("cnr", sigps.load(f"{D}/cnr-2000.txt.xz", directed=True), 5e-5, V[:3])
