"""The execution configuration: how many blocks a lease takes, of what shape, and what they copy."""

from __future__ import annotations

import pytest

from sigps.engine.gpu.launch import (
    MEDIUM,
    NARROW,
    NO_CLUSTER,
    ROOMY,
    WIDE,
    Shape,
    SharedCache,
    choose_cluster,
    choose_shape,
    choose_shared_cache,
    num_blocks,
)


@pytest.mark.parametrize(
    ("resident", "num_vertices", "num_edges", "blocks"),
    [
        (528, 0, 0, 1),  # never none: somebody must find that there is nothing to do
        (528, 1, 0, 1),
        (528, 256, 0, 1),
        (528, 257, 0, 2),
        (528, 256, 7, 1),
        (528, 256, 8, 2),
        (528, 0, 8 * 256, 1),
        (528, 0, 8 * 257, 2),
        (528, 528 * 256, 0, 528),
        (528, 528 * 256 + 1, 0, 528),
        (528, 2**31, 2**33, 528),
        (1, 10**6, 10**7, 1),
        (0, 10**6, 10**7, 1),  # what does not fit at all fails at the launch, and says so
    ],
)
def test_num_blocks(resident: int, num_vertices: int, num_edges: int, blocks: int) -> None:
    assert num_blocks(resident, num_vertices, num_edges, 256) == blocks


def test_wide_blocks_are_fewer() -> None:
    assert num_blocks(132, 1025, 0, 1024) == 2


@pytest.mark.parametrize("shape", [NARROW, MEDIUM, WIDE, ROOMY])
def test_a_block_is_made_of_warps_and_a_multiprocessor_holds_them(shape: Shape) -> None:
    assert shape.threads % 32 == 0
    assert shape.threads <= 1024
    assert shape.threads * shape.blocks_per_sm <= 1536, "what the smallest multiprocessors since sm_80 hold"


@pytest.mark.parametrize(
    ("record_bytes", "stops_early", "reads_columns", "walks", "shape"),
    [
        (4, False, False, False, WIDE),
        (16, False, False, False, WIDE),
        (4, False, False, True, WIDE),
        (0, False, False, False, MEDIUM),
        (0, True, False, False, NARROW),
        (0, False, False, True, MEDIUM),
        (4, True, False, False, NARROW),
        (4, True, False, True, MEDIUM),
        (4, False, True, False, MEDIUM),
        (0, True, True, False, MEDIUM),
        (32, False, False, False, WIDE),
        (64, False, False, False, ROOMY),
        (64, False, True, True, ROOMY),
    ],
)
def test_choose_shape(
    record_bytes: int, stops_early: bool, reads_columns: bool, walks: bool, shape: Shape
) -> None:
    known = {"stops_early": stops_early, "reads_columns": reads_columns, "walks": walks}
    assert choose_shape(record_bytes=record_bytes, **known) == shape


def test_what_the_kernel_is_compiled_with() -> None:
    assert WIDE.macros() == {"SIGPS_THREADS": "1024", "SIGPS_BLOCKS": "1"}
    assert NO_CLUSTER.macros() == {"SIGPS_CLUSTER_THREADS": "0"}


@pytest.mark.parametrize(
    ("arch", "has_one"), [("sm_75", False), ("sm_89", False), ("sm_90", True), ("sm_120", True)]
)
def test_a_cluster_needs_clusters(arch: str, has_one: bool) -> None:
    assert (choose_cluster(arch) != NO_CLUSTER) is has_one


@pytest.mark.parametrize(
    ("record_bytes", "num_vertices", "num_edges", "cache"),
    [
        (4, 31, 10**9, SharedCache(0, 0, 0)),  # fewer than a word of bits
        (4, 100, 10**9, SharedCache(96, 96, 96 * 4 + 12)),
        (4, 10**6, 100, SharedCache(0, 0, 0)),  # hardly an edge for a block
        (6, 10**6, 10**9, SharedCache(0, 1 << 18, 1 << 15)),  # no whole words
        (0, 10**6, 10**9, SharedCache(0, 1 << 18, 1 << 15)),
        (8, 10**6, 10**9, SharedCache(15904, 1 << 18, 160_000)),  # 160,000 bytes, less 2**15 of bits
    ],
)
def test_choose_near(record_bytes: int, num_vertices: int, num_edges: int, cache: SharedCache) -> None:
    given = {"record_bytes": record_bytes, "num_vertices": num_vertices, "num_edges": num_edges}
    assert choose_shared_cache(shared_bytes=200_000, num_blocks=132, **given) == cache


@pytest.mark.parametrize(
    ("record_bytes", "num_hot_ghosts", "num_records", "num_ghosts"),
    [
        (4, 18_432, 31_808 - 18_432, 18_432),  # 127,232 bytes of records in all
        (4, 28_608, 31_808 - 28_608, 28_608),
        (4, 31_808, 31_808, 0),  # too little would be left for owned vertices
        (8, 18_432, 15_904, 0),  # all of the ghosts, or none
        (6, 18_432, 0, 0),
        (0, 18_432, 0, 0),
    ],
)
def test_ghosts_in_shared_memory(
    record_bytes: int, num_hot_ghosts: int, num_records: int, num_ghosts: int
) -> None:
    cache = choose_shared_cache(
        shared_bytes=200_000,
        record_bytes=record_bytes,
        num_vertices=10**6,
        num_edges=10**9,
        num_blocks=132,
        num_hot_ghosts=num_hot_ghosts,
    )
    assert (cache.num_records, cache.num_ghosts) == (num_records, num_ghosts)
    assert cache.num_bytes == (num_records + num_ghosts) * record_bytes + (1 << 15)


@pytest.mark.parametrize("num_hot_ghosts", [0, 32, 18_432])
def test_what_is_cached_fits_any_block(num_hot_ghosts: int) -> None:
    for shared_bytes in (0, 1000, 48 * 1024, 99 * 1024, 163 * 1024, 227 * 1024):
        for record_bytes in (0, 2, 4, 12, 16, 64):
            cache = choose_shared_cache(
                shared_bytes=shared_bytes,
                record_bytes=record_bytes,
                num_vertices=2**30,
                num_edges=2**33,
                num_blocks=132,
                num_hot_ghosts=num_hot_ghosts,
            )
            assert cache.num_bytes <= shared_bytes
            assert cache.num_records % 32 == cache.num_bits % 32 == cache.num_ghosts % 32 == 0
