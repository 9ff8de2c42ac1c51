"""How many blocks a lease takes: the whole table."""

from __future__ import annotations

import pytest

from sigps.engine.configuration import BLOCKS_PER_SM, THREADS, num_blocks


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
    assert num_blocks(resident, num_vertices, num_edges) == blocks


def test_a_block_is_made_of_warps_and_a_multiprocessor_holds_them() -> None:
    assert THREADS % 32 == 0
    assert THREADS <= 1024
    assert THREADS * BLOCKS_PER_SM <= 1536, "what the smallest multiprocessors since sm_80 hold"
