from __future__ import annotations

from typing import Any

import pytest
from direction_cases import DIRECTION_CASES, DirectionCase

from sigps.engine.direction import (
    PULL_GAIN,
    PULL_GAIN_EARLY,
    choose_direction,
    choose_sender_filter,
    pays_in_priority_order,
)
from sigps.kernels.cpu.arguments import SENDERS_ALL, SENDERS_BITMAP, SENDERS_NONE, SENDERS_TEST_EACH

USUAL: dict[str, Any] = {
    "sender_edges": 10,
    "num_edges": 1000,
    "num_active": 0,
    "num_vertices": 100,
    "can_push": True,
    "pull_gain": PULL_GAIN,
}


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        ({}, "push"),
        ({"sender_edges": 0}, "push"),
        ({"sender_edges": 1000}, "pull"),
        ({"can_push": False}, "pull"),
        ({"can_push": False, "forced": "push"}, "pull"),  # there is no push form
        ({"forced": "pull"}, "pull"),
        ({"sender_edges": 1000, "forced": "push"}, "push"),
        ({"num_active": 100, "forced": "push"}, "push"),
        ({"num_active": 76, "sender_edges": 0}, "pull"),  # which asks nobody, and passes over all vertices
        ({"num_active": 75, "sender_edges": 0}, "push"),
        ({"num_active": 100}, "push"),  # a pull would ask along all edges
        ({"num_active": 100, "sender_edges": 90}, "pull"),
        ({"num_edges": 0, "num_vertices": 0, "sender_edges": 0}, "pull"),
        ({"sender_edges": 1100 // PULL_GAIN}, "push"),
        ({"sender_edges": 1100 // PULL_GAIN + 1}, "pull"),
        ({"sender_edges": 1100 // PULL_GAIN_EARLY, "pull_gain": PULL_GAIN_EARLY}, "push"),
        ({"sender_edges": 1100 // PULL_GAIN_EARLY + 1, "pull_gain": PULL_GAIN_EARLY}, "pull"),
    ],
)
def test_the_table_of_decisions(change: dict[str, Any], direction: str) -> None:
    assert choose_direction(**{**USUAL, **change}) == direction


@pytest.mark.parametrize("case", DIRECTION_CASES, ids=lambda case: case.why)
def test_the_table_that_devices_pass_too(case: DirectionCase) -> None:
    chosen = choose_direction(
        sender_edges=case.sender_edges,
        num_edges=case.num_edges,
        num_vertices=case.num_vertices,
        pull_gain=case.pull_gain,
        can_push=case.can_push,
        retired_edges=case.retired_edges,
        forced=case.forced,
    )
    assert chosen == case.chosen


def test_more_senders_never_turn_a_pull_into_a_push() -> None:
    for gain in (PULL_GAIN, PULL_GAIN_EARLY):
        options = {**USUAL, "pull_gain": gain}
        chosen = [choose_direction(**{**options, "sender_edges": n}) for n in range(1100)]
        assert chosen == sorted(chosen, reverse=True)
        assert {"push", "pull"} == set(chosen)


@pytest.mark.parametrize(
    ("sent", "sent_edges", "stops_early", "sender_filter"),
    [
        (0, 0, False, SENDERS_NONE),
        (0, 0, True, SENDERS_NONE),
        (1, 5, False, SENDERS_BITMAP),
        (99, 900, False, SENDERS_BITMAP),
        (99, 901, False, SENDERS_TEST_EACH),  # so few are missing that a wrong guess is rare
        (1, 5, True, SENDERS_TEST_EACH),  # the first hit ends the search: nothing is gathered ahead of it
        (100, 1000, False, SENDERS_ALL),
        (100, 1000, True, SENDERS_ALL),
        (100, 0, False, SENDERS_ALL),  # every ghost sent, and every owned vertex with an out-edge
    ],
)
def test_a_pull_tests_no_more_senders_than_it_must(
    sent: int, sent_edges: int, stops_early: bool, sender_filter: int
) -> None:
    chosen = choose_sender_filter(
        sent=sent, could_send=100, sent_edges=sent_edges, num_edges=1000, stops_early=stops_early
    )
    assert chosen == sender_filter


@pytest.mark.parametrize(
    ("vertices", "edges", "expected"),
    [
        (1023, 3000, False),
        (1024, 3000, True),
        (1024, 8 * 1024 - 1, True),
        (1024, 8 * 1024, False),
        (8192, (1 << 16) - 1, True),
        (4096, (1 << 16) - 1, False),
        (4096, 1 << 16, True),
        (0, 0, False),
    ],
)
def test_priority_order_is_of_graphs_that_are_not_tiny(vertices: int, edges: int, expected: bool) -> None:
    assert pays_in_priority_order(num_vertices=vertices, num_edges=edges) is expected
