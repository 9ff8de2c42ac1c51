"""Programs of phases give what the same algorithms give as compute(), on every engine; and what is said of them."""

import itertools
import math

import numpy as np
import pytest
from battery import Sample
from cells import run_cell
from gas_programs import (
    BeliefPropagation,
    ConvergedPageRank,
    DampedValues,
    GatheredHeat,
    GatheredPageRank,
    GatheredPaths,
    GatheredSSSP,
    GatheredWCC,
    HalfDamped,
    Loudest,
    UpdatedLabels,
    UpdatedPageRank,
)
from ways import Way, results_of

from sigps import CompileError, Graph, apps, run
from sigps.compiler.explain import explain

N = 30
random = np.random.default_rng(5)
SOURCES = [*range(N), *random.integers(0, N, 90).tolist()]
TARGETS = [*[(v + 1) % N for v in range(N)], *random.integers(0, N, 90).tolist()]
WEIGHTS = (random.integers(1, 9, N + 90) * 1.0).tolist()
GRAPH = Graph.from_edges(SOURCES, TARGETS, weights=WEIGHTS)
DEVICES = ["python", "cpu"]
TWICE = [
    (GatheredPageRank(), apps.PageRank(dangling="leak"), "rank"),
    (UpdatedPageRank(), apps.PageRank(dangling="leak"), "rank"),
    (GatheredSSSP(source=3), apps.SSSP(source=3), "distance"),
    (GatheredPaths(source=3), apps.SSSP(source=3), "distance"),
    (GatheredPaths(source=3), apps.SSSP(source=3), "parent"),
    (GatheredWCC(), apps.WCC(), "component"),
    (GatheredHeat(source=3, rate=0.01), apps.HeatDiffusion(source=3, rate=0.01, steps=5), "heat"),
    (UpdatedLabels(), apps.CDLP(), "label"),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("program", "app", "field"), TWICE, ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
def test_equals_the_app(program, app, field, device):
    found = run(program, GRAPH, device=device)[field].tolist()
    expected = run(app, GRAPH, device="python")[field].tolist()
    assert found == (pytest.approx(expected, rel=1e-12) if field in ("rank", "heat") else expected)


def test_is_the_same_on_several_ranks():
    sample = Sample(SOURCES, TARGETS, WEIGHTS)
    for program, field in ((GatheredSSSP(source=3), "distance"), (GatheredWCC(), "component")):
        (_, alone), *others = results_of(program, sample, [Way(), Way(2), Way(3, partitioner="hash")])
        for _, other in others:
            assert np.array_equal(alone[field], other[field])


@pytest.mark.parametrize("device", DEVICES)
def test_gathers_until_no_vertex_changes(device):
    found = run(ConvergedPageRank(tolerance=1e-12), GRAPH, device=device)
    degree = np.bincount(SOURCES, minlength=N)
    rank = np.ones(N)
    while True:
        total = np.bincount(TARGETS, weights=(rank / degree)[SOURCES], minlength=N)
        rank, change = 0.15 + 0.85 * total, np.abs(0.15 + 0.85 * total - rank).max()
        if change <= 1e-12:
            break
    assert np.allclose(found["rank"], rank, rtol=1e-10, atol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_merge_of_the_users(device):
    found = run(Loudest(), Graph.from_edges([1, 2, 3], [0, 0, 1]), device=device)["loud"]
    assert found.tolist() == [2.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize("device", DEVICES)
def test_beliefs_on_a_tree_are_exact(device):
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (5, 6)]
    coupling, program = 0.4, BeliefPropagation(coupling=0.4, seed=2)
    found = run(program, Graph.from_edges(*zip(*edges, strict=True), directed=False), device=device)["belief"]
    prior = [0.1 * ((v * 7 + 6) % 11 - 5) for v in range(7)]
    mass = np.zeros((7, 2))
    for spins in itertools.product((-1, 1), repeat=7):  # every assignment of the tree's variables
        energy = sum(coupling * spins[u] * spins[v] for u, v in edges)
        energy += sum(0.5 * h * s for h, s in zip(prior, spins, strict=True))
        for v, spin in enumerate(spins):
            mass[v, (spin + 1) // 2] += math.exp(energy)
    assert np.allclose(found, np.log(mass[:, 1] / mass[:, 0]), rtol=1e-12, atol=1e-12)


def test_beliefs_on_a_grid_follow_their_messages():
    side = 4
    pairs = [(v, v + 1) for v in range(side * side) if (v + 1) % side] + [
        (v, v + side) for v in range(side * (side - 1))
    ]
    found = run(BeliefPropagation(rounds=6), Graph.from_edges(*zip(*pairs, strict=True), directed=False))
    arcs = [*pairs, *((v, u) for u, v in pairs)]
    prior = [0.1 * ((v * 7 + 3) % 11 - 5) for v in range(side * side)]
    belief, told = list(prior), dict.fromkeys(arcs, 0.0)
    for round in range(7):
        if round > 0:
            belief = [p + sum(told[a] for a in arcs if a[1] == v) for v, p in enumerate(prior)]
        told = {
            (u, v): 2 * math.atanh(math.tanh(0.5) * math.tanh(0.5 * (belief[u] - told[v, u])))
            for u, v in arcs
        }
    assert np.allclose(found["belief"], belief, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_damped_values_stay_on_edges(device):
    found = run(DampedValues(rounds=3), GRAPH, device=device)
    value, flow = np.ones(N), np.zeros(len(SOURCES))
    for superstep in range(4):
        if superstep > 0:
            value = 1.0 + 0.25 * np.bincount(TARGETS, weights=flow, minlength=N)
        if superstep < 3:
            flow = 0.5 * flow + 0.5 * value[SOURCES] * np.array(WEIGHTS)
    assert np.allclose(found["value"], value, rtol=1e-12, atol=0)
    assert math.isclose(found.edges["flow"].sum(), flow.sum(), rel_tol=1e-12)


def test_an_edge_value_that_can_be_made_again_is_not_stored():
    assert ConvergedPageRank.declaration.edge_states == ()
    assert [field.name for field in DampedValues.declaration.edge_states] == ["flow"]
    text = explain(ConvergedPageRank)
    assert "edge.share   made again from what its source sends: not stored" in text
    assert "messages are only reduced" in text
    assert "edge.flow    kept on edges" in explain(DampedValues)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (GatheredSSSP, "only what changed is gathered"),
        (GatheredPaths, "only what changed is gathered"),
        (ConvergedPageRank, "until a superstep changes none"),
        (GatheredPageRank, "all vertices stop in the same superstep"),
        (GatheredHeat, "reads self.heat of the target, so it runs there, over a list"),
    ],
)
def test_explain_says_what_became_of_the_phases(program, says):
    assert says in explain(program)


NOT_THE_BEST = {
    "takes any total": ["self.x = total", "return True"],
    "keeps the worse": ["changed = total > self.x", "if changed:", "    self.x = total", "return changed"],
    "stores something else": [
        "changed = total < self.x",
        "if changed:",
        "    self.x = total * 0.5",
        "return changed",
    ],
    "depends on the superstep": [
        "changed = total < self.x and self.superstep < 9",
        "if changed:",
        "    self.x = total",
        "return changed",
    ],
    "changes without a better total": [
        "changed = total < self.x",
        "if changed:",
        "    self.x = total",
        "self.y += 1.0",
        "return changed",
    ],
}


@pytest.mark.parametrize("apply", NOT_THE_BEST.values(), ids=NOT_THE_BEST)
def test_others_gather_from_every_vertex(apply):
    names = run_cell(f"""
from sigps import GAS
class Program(GAS):
    x: State[float] = inf
    y: State[float] = 0.0
    merge = "min"
    def gather(self, edge):
        return edge.source.x + 1.0
    def apply(self, total):
        {(chr(10) + " " * 8).join(apply)}
""")
    assert "only what changed" not in dict(names["Program"].declaration.parts)["runs"]


def test_a_start_that_tells_a_better_value_than_the_default_is_gathered_everywhere():
    names = run_cell("""
from sigps import GAS
class Program(GAS):
    x: State[float] = 3.0
    merge = "min"
    def start(self):
        return self.id == 0
    def gather(self, edge):
        return edge.source.x
    def apply(self, total):
        if total < self.x:
            self.x = total
            return True
        return False
""")
    assert "only what changed" not in dict(names["Program"].declaration.parts)["runs"]


HEAD = """
from sigps import GAS
class Program(GAS):
    x: State[float] = 0.0
    value: EdgeState[float] = 0.0
"""
GATHER = """
    def gather(self, edge):
        return 1.0
"""
APPLY = """
    def apply(self, total):
        return False
"""
REFUSED = {
    "no apply": (GATHER, "has no apply()"),
    "both": (APPLY + "    def update(self):\n        pass\n", "takes the place"),
    "no result": (
        GATHER + "    def apply(self, total):\n        self.x = total\n",
        "apply() returns whether the vertex changed",
    ),
    "a loop in gather": (
        APPLY
        + "    def gather(self, edge):\n        for i in range(3):\n            pass\n        return 1.0\n",
        "gather() is assignments of locals and one 'return'",
    ),
    "an unknown edge value": (
        GATHER + APPLY + "    def scatter(self, edge):\n        edge.other = 1.0\n",
        "declare it on edges: 'other: EdgeState[float] = 0.0'",
    ),
    "a branch": (
        "    def update(self):\n        if self.x > 0:\n            for edge in self.out_edges:\n"
        "                edge.value = self.x\n",
        "stands on no branch",
    ),
    "a local": (
        "    def update(self):\n        y = sum(e.value for e in self.in_edges)\n"
        "        for edge in self.out_edges:\n            edge.value = y\n",
        "reads the local 'y'",
    ),
    "merge": (GATHER + APPLY + "    merge = 'mean'\n", "merge='mean' is neither"),
}


@pytest.mark.parametrize(("body", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_translated_is_refused(body, problem):
    with pytest.raises(CompileError) as caught:
        run_cell(HEAD + body)
    assert problem in str(caught.value)


def test_errors_of_the_compiler_point_at_the_users_line():
    names = run_cell(
        HEAD + "    def gather(self, edge):\n        return 1.0\n"
        "    def apply(self, total):\n        self.x = self.missing\n        return False\n"
    )
    with pytest.raises(CompileError) as caught:
        run(names["Program"](), GRAPH)
    assert caught.value.source == "self.x = self.missing"


def test_a_subclass_may_write_one_phase_anew():
    found = run(HalfDamped(tolerance=1e-13), GRAPH)["rank"]
    degree = np.bincount(SOURCES, minlength=N)
    shares = np.zeros((N, N))
    np.add.at(shares, (TARGETS, SOURCES), 1.0 / degree[SOURCES])
    assert np.allclose(found, np.linalg.solve(np.eye(N) - 0.5 * shares, np.full(N, 0.5)), rtol=1e-10, atol=0)
    assert HalfDamped.declaration.edge_states == ()


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("program", "field"),
    [
        (GatheredSSSP(source=3), "distance"),
        (GatheredHeat(source=3, rate=0.01), "heat"),
        (DampedValues(), "value"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_runs_on_a_gpu(program, field):
    found, expected = run(program, GRAPH, device="cuda")[field], run(program, GRAPH, device="python")[field]
    assert np.allclose(found, expected, rtol=1e-4 if field != "distance" else 0, atol=0)
