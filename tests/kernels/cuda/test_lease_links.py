"""The kernels of the GPU engine compile with every program that the engine takes, and link with some.

Without a GPU. Linking takes two to sixteen seconds of processor time, compiling a quarter of one.
"""

from __future__ import annotations

import itertools
from typing import Any

import equality_programs
import numpy as np
import pytest
from edge_programs import Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves
from kernel_compiling import assert_compiles
from loop_programs import loop_program
from team_programs import SHARED, WALKED, listed_program, walking_program
from turns import in_turn
from worked_cases import COLUMNS, PROGRAMS, kite

import sigps.apps
from sigps import Vertex
from sigps.compiler.cuda.compile import CudaProgram, compile_for_cuda, find_atomics_obstacle, link, macros_of
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, VertexProgram
from sigps.device.linking import link_kernel
from sigps.engine.gpu.launch import GROUPED, MEDIUM, NARROW, NO_CLUSTER, WIDE, Shape, choose_cluster
from sigps.engine.gpu.memory_plan import can_cluster
from sigps.engine.gpu.priority import bucket_macros
from sigps.engine.gpu.simple_rows import Counting
from sigps.engine.gpu.variant import BY_EDGE, PEERS, TURNS, find_edge_obstacle
from sigps.errors import DeviceError

APPS = [*sigps.apps.__all__, "PageRank_tolerance"]

REQUIRED = {
    "Dependencies": {"source": 0},
    "Distances": {"source": 0},
    "EgoNet": {"source": 0},
    "FastRP": {"dimensions": 24},
    "HarmonicLabels": {"one": 0, "zero": 1},
    "HeatDiffusion": {"source": 0, "rate": 0.1},
    "KHop": {"source": 0},
    "Katz": {"attenuation": 0.1},
    "MaximumFlow": {"source": 0, "target": 1},
    "Nearness": {"source": 0},
    "NeuralNetwork": {"source": 0},
    "PersonalisedPageRank": {"source": 0},
    "Similarity": {"source": 0},
}
"""What must be given to apps that are in no other collection, and for short compilations."""

TARGETS: list[tuple[str, Any]] = [("sm_80", "single"), ("sm_90", "double")]


def made(name: str) -> Vertex:
    """Return a program by its name, from either collection, or an app."""
    if name in sigps.apps.__all__ and name not in PROGRAMS:
        app: Vertex = getattr(sigps.apps, name)(**REQUIRED.get(name, {}))
        return app
    program = equality_programs.PROGRAMS[name] if name in equality_programs.PROGRAMS else PROGRAMS[name]()
    return program if isinstance(program, Vertex) else program(0)


def names() -> list[str]:
    """Name all programs, the apps first; those of both collections once."""
    others = [name for name in equality_programs.PROGRAMS if name not in ("bfs", "sssp", "wcc", "pagerank")]
    return list(dict.fromkeys([*APPS, *(name for name in PROGRAMS if name not in APPS), *others]))


APPS_AND_SOME = [name for i, name in enumerate(names()) if name in APPS or i % 4 == 0]

CASES = [(name, *TARGETS[i % 2]) for i, name in enumerate(APPS_AND_SOME)]
"""The apps and every fourth of the other programs, for one of the targets in turn."""

LINKED = [
    *("KHop", "CDLP", "BiTriDN", "Blocks", "DNGraphs", "FourCycles", "KCore", "LabelGroups"),
    *("LeidenRound", "LouvainRound", "MaximumFlow", "MinimumSpanningForest"),
    *("Node2vecWalks", "StreamDN", "postman"),
]
"""With any two switches of one of the others together."""

SWITCHES = [
    *("BY_WARP", "BY_TEAM", "LISTED", "SORTED", "GROUPED", "DIRECT", "MASTER", "WALKS", "EARLY_EXIT"),
    *("NUM_AGGREGATES", "NUM_EDGE_STATES", "RECORD_BYTES"),
]
"""The macros that choose what a kernel does; of the last three, whether there are any."""


def both_ways_columns() -> dict[str, Any]:
    flows = dict.fromkeys(("up", "down"), np.dtype(np.int64))  # of MaximumFlow
    return flows | {name: c.dtype for name, c in kite().both_ways().columns.items()}


def form_of(name: str, precision: Any) -> tuple[str, ...]:
    """Return which of the texts of a lease a program has."""
    macros = macros_of(analyse(made(name), precision), both_ways_columns(), narrow_ids=True)
    values = [macros[f"SIGPS_{switch}"] for switch in SWITCHES]
    return (*values[:-3], *("some" if value != "0" else "none" for value in values[-3:]))


def prepared(
    program: VertexProgram, arch: str, narrow_ids: bool, shape: Shape
) -> tuple[CudaProgram, dict[str, str], bool]:
    """Return a program compiled, the macros of its lease, and whether that has the kernel for small frontiers."""
    native = compile_for_cuda(program, both_ways_columns(), narrow_ids=narrow_ids, arch=arch)
    cluster = choose_cluster(arch) if can_cluster(native) else NO_CLUSTER
    if program.consumption is Consumption.GROUPED:
        shape = GROUPED
    return native, shape.macros() | cluster.macros(), cluster != NO_CLUSTER


def assert_links(program: VertexProgram, arch: str, narrow_ids: bool = True, shape: Shape = MEDIUM) -> None:
    native, macros, has_cluster = prepared(program, arch, narrow_ids, shape)
    cubin = link(native, "lease", arch, macros)
    assert cubin[:4] == b"\x7fELF"
    assert b"run_lease" in cubin
    assert (b"run_small_frontier" in cubin) is has_cluster


def assert_lease_compiles(
    program: VertexProgram, arch: str, narrow_ids: bool = True, shape: Shape = MEDIUM
) -> None:
    native, macros, _ = prepared(program, arch, narrow_ids, shape)
    assert_compiles(native, "lease", arch, macros)


@pytest.mark.parametrize(("name", "arch", "precision"), [case for case in CASES if case[0] in LINKED])
def test_a_lease_links(name: str, arch: str, precision: Any) -> None:
    assert_links(analyse(made(name), precision), arch)


@pytest.mark.parametrize(("name", "arch", "precision"), [case for case in CASES if case[0] not in LINKED])
def test_a_lease_compiles(name: str, arch: str, precision: Any) -> None:
    assert_lease_compiles(analyse(made(name), precision), arch)


def test_any_two_switches_link_together() -> None:
    """A program with two that no other has together belongs in LINKED."""
    pairs = {
        name: set(itertools.combinations(enumerate(form_of(name, precision)), 2))
        for name, _, precision in CASES
    }
    linked = set().union(*(pairs[name] for name in LINKED))
    assert [name for name, found in pairs.items() if not found <= linked] == []


def test_a_lease_links_with_wide_ids() -> None:
    assert_links(analyse(made("BFS")), "sm_90", narrow_ids=False)
    assert_lease_compiles(analyse(made("WCC")), "sm_90", narrow_ids=False)


@pytest.mark.parametrize(("form", "target"), in_turn([("PageRank", WIDE), ("BFS", NARROW)], TARGETS))
def test_a_lease_links_in_other_shapes(form: tuple[str, Shape], target: tuple[str, Any]) -> None:
    (name, shape), (arch, precision) = form, target
    assert_links(analyse(made(name), precision), arch, shape=shape)


@pytest.mark.parametrize(
    ("name", "arch", "precision"), [("BiTriDN", *TARGETS[0]), ("Closeness", *TARGETS[1])]
)
def test_a_lease_of_teams_links(name: str, arch: str, precision: Any) -> None:
    """Or compiles, as a program of which the lease of other shape links."""
    program = analyse(Closeness() if name == "Closeness" else made(name), precision)
    (assert_links if name == "Closeness" else assert_lease_compiles)(program, arch, shape=WIDE)


@pytest.mark.parametrize(("sends", "arch", "precision"), [(False, *TARGETS[0]), (True, *TARGETS[1])])
def test_a_lease_of_teams_of_threads_links(sends: bool, arch: str, precision: Any) -> None:
    program = listed_program(SHARED["least by key, of some"], sends=sends)
    assert_links(analyse(program, precision), arch)


@pytest.mark.parametrize(
    ("name", "is_direct", "arch", "precision"),
    [("least and its weight", True, *TARGETS[0]), ("the other ends' marks", False, *TARGETS[1])],
)
def test_a_lease_of_teams_that_go_through_edges_links(
    name: str, is_direct: bool, arch: str, precision: Any
) -> None:
    """Or compiles, where it takes long to link."""
    program = analyse(walking_program(WALKED[name], is_direct=is_direct), precision)
    (assert_links if is_direct else assert_lease_compiles)(program, arch)


@pytest.mark.parametrize(
    ("name", "peers"), [("BFS", {}), ("neighbourhood", PEERS), ("MinimumSpanningForest", PEERS)]
)
def test_a_lease_that_checks_itself_links(name: str, peers: dict[str, str]) -> None:
    """With SIGPS_DEBUG the kernels trap where a superstep does not follow from the one before; forests compile."""
    native = compile_for_cuda(analyse(made(name)), COLUMNS, narrow_ids=True, arch="sm_90")
    cluster = choose_cluster("sm_90") if can_cluster(native) and not peers else NO_CLUSTER
    macros = MEDIUM.macros() | (peers or cluster.macros())
    if name == "MinimumSpanningForest":
        assert_compiles(native, "lease", "sm_90", {"SIGPS_DEBUG": "1"} | macros)
        return
    checked = link(native, "lease", "sm_90", {"SIGPS_DEBUG": "1"} | macros)
    assert b"run_lease" in checked
    if not peers:
        assert checked != link(native, "lease", "sm_90", macros)


@pytest.mark.parametrize(
    "name", ["best and its sender", "bits of a kind", "product", "a hit that ends compute()"]
)
def test_a_lease_of_a_loop_that_folds_links(name: str) -> None:
    """Two link, the others compile."""
    links = name in ("best and its sender", "a hit that ends compute()")
    (assert_links if links else assert_lease_compiles)(analyse(loop_program(name)), "sm_90")


EDGE_CASES = [
    *(("PageRank", *target) for target in TARGETS),
    *((name, *TARGETS[1]) for name in ("SSSP", "HITS", "truths", "MaximalMatching")),
    *((name, *TARGETS[0]) for name in ("BFS", "WCC", "extremes", "totals", "alternatives")),
]


@pytest.mark.parametrize(("name", "arch", "precision"), EDGE_CASES)
def test_a_lease_links_by_edge(name: str, arch: str, precision: Any) -> None:
    """Sums of two widths, 16 bytes at once, and aggregators are linked, the others compiled."""
    native = compile_for_cuda(analyse(made(name), precision), both_ways_columns(), narrow_ids=True, arch=arch)
    assert find_edge_obstacle(native, arch) is None
    if name not in ("PageRank", "MaximalMatching", "totals"):
        assert_compiles(native, "lease", arch, MEDIUM.macros() | BY_EDGE)
        return
    cubin = link(native, "lease", arch, MEDIUM.macros() | BY_EDGE)
    assert b"run_lease" in cubin
    assert b"run_small_frontier" not in cubin


@pytest.mark.parametrize("program", [Marks(), EdgeTriangles()])
def test_what_is_kept_on_edges_goes_by_vertex(program: sigps.Vertex) -> None:
    native = compile_for_cuda(analyse(program), {}, narrow_ids=True, arch="sm_90")
    assert find_edge_obstacle(native, "sm_90") == "values kept on edges (EdgeState), or common_neighbors()"


@pytest.mark.parametrize(
    ("name", "arch", "why"),
    [
        ("GreedyColouring", "sm_90", "32 bytes that combine as a whole"),
        ("MaximalMatching", "sm_80", "16 bytes that combine as a whole"),
        ("lowest_offer", "sm_90", "24 bytes that combine as a whole"),
        ("product", "sm_90", "a combiner that is a function"),
    ],
)
def test_where_there_is_no_atomic_the_kernel_says_so_too(name: str, arch: str, why: str) -> None:
    native = compile_for_cuda(analyse(made(name)), both_ways_columns(), narrow_ids=True, arch=arch)
    assert why in (find_atomics_obstacle(native, arch) or "")
    with pytest.raises(DeviceError, match="no atomic combines this row"):
        link(native, "lease", arch, MEDIUM.macros() | BY_EDGE)


@pytest.mark.parametrize("name", ["PageRank", "BFS", "totals"])
def test_a_lease_of_several_gpus_links_by_edge(name: str) -> None:
    native = compile_for_cuda(analyse(made(name), "single"), COLUMNS, narrow_ids=True, arch="sm_90")
    assert b"run_lease" in link(native, "lease", "sm_90", MEDIUM.macros() | BY_EDGE | PEERS)


@pytest.mark.parametrize(
    ("name", "arch", "precision"),
    [(name, *TARGETS[i % 2]) for i, name in enumerate(["CDLP", "votes", "pulls", "answers"])],
)
def test_a_lease_that_groups_by_key_links(name: str, arch: str, precision: Any) -> None:
    if name in ("votes", "answers"):
        assert_links(analyse(made(name), precision), arch, narrow_ids=name == "votes")
    native = compile_for_cuda(analyse(made(name), precision), COLUMNS, narrow_ids=True, arch=arch)
    checked = GROUPED.macros() | PEERS | {"SIGPS_DEBUG": "1", "SIGPS_CLUSTER_THREADS": "0"}
    if name == "CDLP":
        assert b"run_lease" in link(native, "lease", arch, checked)
    else:
        assert_compiles(native, "lease", arch, checked)


@pytest.mark.parametrize("name", ["PageRank", "KCore"])
def test_a_lease_that_takes_turns_links(name: str) -> None:
    native = compile_for_cuda(analyse(made(name)), COLUMNS, narrow_ids=True, arch="sm_90")
    if name == "KCore":
        assert_compiles(native, "lease", "sm_90", MEDIUM.macros() | TURNS)
        return
    by_turns = link(native, "lease", "sm_90", MEDIUM.macros() | TURNS)
    assert b"run_lease" in by_turns
    assert by_turns != link(native, "lease", "sm_90", MEDIUM.macros())


@pytest.mark.parametrize(
    "name", ["PageRank", "BFS", "coreness", "totals", "neighbourhood", "MinimumSpanningForest"]
)
def test_a_lease_of_several_gpus_links(name: str) -> None:
    native = compile_for_cuda(analyse(made(name), "single"), COLUMNS, narrow_ids=True, arch="sm_90")
    if name in ("BFS", "coreness", "MinimumSpanningForest"):  # neighbourhood links above, as it checks itself
        assert b"run_lease" in link(native, "lease", "sm_90", MEDIUM.macros() | PEERS)
    else:
        assert_compiles(native, "lease", "sm_90", MEDIUM.macros() | PEERS)


@pytest.mark.parametrize(
    ("program", "target"),
    list(zip([Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves], TARGETS * 4, strict=False)),
)
def test_a_lease_of_what_is_kept_on_edges_links(program: type[Vertex], target: tuple[str, Any]) -> None:
    """Three link, the others compile."""
    arch, precision = target
    links = program in (EdgeTriangles, Marks, Returns)
    (assert_links if links else assert_lease_compiles)(analyse(program(), precision), arch)


@pytest.mark.parametrize(("number", "target"), in_turn([0], TARGETS))
def test_the_priority_form_form_links(number: int, target: tuple[str, Any]) -> None:
    arch, precision = target
    forms = [analyse(made(name), precision).priority_form for name in names()]
    found = [form for form in forms if form is not None]
    assert found
    assert_links(found[number], arch)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_building_kernels_link(arch: str) -> None:
    cubin = link_kernel("building", arch)
    assert cubin[:4] == b"\x7fELF"
    names = [
        "draw_rmat_thread",
        "store_edges_thread",
        "count_kept_block",
        "place_kept_block",
        "make_keys_u4_thread",
    ]
    assert [n for n in names if f"{n}_mapped".encode() not in cubin] == []


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_drawing_kernels_link(arch: str) -> None:
    cubin = link_kernel("drawing", arch)
    names = ["count_stored_rmat_thread", "count_ends_rmat_thread", "store_rmat_thread", "number_thread"]
    names += ["weigh_rows_warp"]
    assert [n for n in names if f"{n}_mapped".encode() not in cubin] == []


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_layout_kernels_link(arch: str) -> None:
    cubin = link_kernel("layout", arch)
    assert cubin[:4] == b"\x7fELF"
    by_width = (
        "place_column_{}_warp",
        "place_sorted_column_{}_warp",
        "place_piece_column_{}_warp",
        "take_rows_{}_thread",
        "move_rows_{}_warp",
    )
    names = [
        "place_ends_warp",
        "place_sorted_ends_warp",
        "place_piece_ends_warp",
        "make_piece_keys_warp",
        "make_keys_warp",
        "find_reverse_warp",
        "widen_thread",
        "take_ids_32_thread",
        "take_ids_64_thread",
        "begin_run_thread",
    ]
    names += [name.format(bits) for name in by_width for bits in (8, 16, 32, 64)]
    assert [n for n in names if f"{n}_mapped".encode() not in cubin] == []


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_counting_kernels_link(arch: str, directed: bool) -> None:
    for counting in (Counting(), Counting(lanes=32, loads=1, blocks_per_sm=1, threads=1024)):
        cubin = link_kernel("triangles", arch, counting.macros(directed=directed))
        assert cubin[:4] == b"\x7fELF"
        names = ["list_arcs_warp_mapped", "copy_rows_warp_mapped", "count_block_mapped", "count_warp_mapped"]
        assert [name for name in names if name.encode() not in cubin] == []


@pytest.mark.parametrize("value_type", ["int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize(("arch", "takes_min"), [("sm_80", False), ("sm_90", True)])
def test_the_kernels_of_buckets_link(arch: str, takes_min: bool, value_type: str) -> None:
    cubin = link_kernel("buckets", arch, bucket_macros(value_type, takes_min))
    assert cubin[:4] == b"\x7fELF"
    assert b"find_best_warp_mapped" in cubin
    assert b"release_warp_mapped" in cubin


def test_every_app_is_names() -> None:
    assert set(APPS) <= set(names())
