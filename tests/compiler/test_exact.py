"""Deterministic runs: sums of floats are equal bit for bit for every device, rank count, partitioner and direction."""

from __future__ import annotations

import math
from typing import Any

import host_gpu
import pytest
from battery import BATTERY, Sample
from cells import program_of
from float_programs import PROGRAMS, bits
from thread_group import ThreadGroup, run_ranks
from turns import in_turn

from sigps import DeviceError, Graph, Result, Vertex, run
from sigps.compiler.cpu.exact import with_exact_sums
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse

NAMES = ("skewed", "hub_on_a_partition_border", "parallel_edges", "sparse_ids")


def on_ranks(program: Vertex, sample: Sample, size: int, **options: Any) -> dict[str, Any]:
    def one(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), deterministic=True, **options)

    return bits(run_ranks(size, one)[0])


WAYS: list[tuple[int, dict[str, Any]]] = [
    (1, {"device": "cpu", "direction": "pull"}),
    (1, {"device": "cpu", "direction": "push", "threads": 2}),
    (1, {"device": "cpu", "schedule": "edge"}),
    (2, {"partitioner": "hash"}),
    (3, {"direction": "push"}),
    (1, {"device": "cpu", "threads": 3}),
    (2, {"device": "python"}),
]
"""Ranks, and options of a run."""


@pytest.mark.parametrize(
    ("name", "ways", "graph"), in_turn(PROGRAMS, [WAYS[::3], WAYS[1::3], WAYS[2::3]], NAMES)
)
def test_every_way_leaves_the_same_bits(
    name: str, ways: list[tuple[int, dict[str, Any]]], graph: str
) -> None:
    program, sample = PROGRAMS[name](), BATTERY[graph]
    judge = bits(run(program, sample.build(), device="python", deterministic=True))
    for size, options in ways:
        if "schedule" not in options or name not in ("Posted", "Thrown"):
            assert on_ranks(program, sample, size, **options) == judge, (size, options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_leaves_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    program, sample = PROGRAMS[name](), BATTERY["skewed"]
    judge = bits(run(program, sample.build(), device="cpu", deterministic=True))
    assert bits(run(program, sample.build(), device="cuda", deterministic=True)) == judge
    assert on_ranks(program, sample, 2, device="cuda", partitioner="hash") == judge


def test_a_sum_is_the_nearest_float() -> None:
    """What one after another would lose, since 2**-53 is half a unit of the last place of 1."""
    star = Graph.from_edges(range(1, 65), [0] * 64)
    body = "if self.superstep == 0:\n    self.send_to_neighbors(1.0 if self.id == 1 else 2.0**-53)\n"
    program = program_of(
        body + "self.x = sum(messages)\nself.total += self.x\nself.vote_to_halt()",
        "total = Aggregator.sum(float)",
    )
    expected = math.fsum([1.0, *[2.0**-53] * 63])
    assert expected > 1.0 == sum([1.0, *[2.0**-53] * 63])
    for device in ("python", "cpu"):
        found = run(program, star, device=device, deterministic=True)
        assert (found["x"][0], found.aggregators["total"]) == (expected, expected)


@pytest.mark.parametrize("name", ["PageRank", "Mixed", "Posted", "Vectors", "Thrown"])
def test_links_for_a_gpu(name: str) -> None:
    pytest.importorskip("cuda.core")
    program = with_exact_sums(analyse(PROGRAMS[name]()), {})
    compiled = compile_for_cuda(program, {}, narrow_ids=True, arch="sm_90")
    assert compiled.defines["SIGPS_FUSES"] == "0"
    assert len(link(compiled, "gather_reference", "sm_90")) > 1000


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (
            "for m in messages:\n    self.x = m - self.x\nself.send_to_neighbors(0.5)",
            "",
            "read floats one by one",
        ),
        (
            "self.x = sum(messages)\nself.send_to_neighbors(0.5)",
            ", combiner=mean",
            "a function of yours combines floats",
        ),
        ("self.total += 1.5", "", "a function of yours combines floats"),
    ],
)
def test_what_a_gpu_refuses(body: str, kind: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    before = "def mean(a, b):\n    return (a + b) / 2"
    fields = "total = Aggregator.custom(mean, identity=0.0)" if "total" in body else ""
    program = program_of(body, fields, message=f"message=float{kind}", before=before)
    with pytest.raises(DeviceError, match=says):
        run(program, BATTERY["grid"].build(), device="cuda", deterministic=True, max_supersteps=2)


@pytest.mark.parametrize(
    ("body", "fields", "says"),
    [
        (
            "self.total += Vector[float, 300](0.5)",
            "total = Aggregator.sum(Vector[float, 300])",
            "sums of vectors of more than 256 floats",
        ),
        (
            "self.x = sum(sum(messages))\nself.send_to_neighbors(Vector[float, 300](0.5))",
            "",
            "sums of vectors of more than 256 floats",
        ),
    ],
)
def test_which_vectors_a_gpu_refuses(
    body: str, fields: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    program = program_of(body, fields, message="message=Vector[float, 300]")
    with pytest.raises(DeviceError, match=says):
        run(program, BATTERY["grid"].build(), device="cuda", deterministic=True, max_supersteps=2)
