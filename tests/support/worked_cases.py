"""Vertex programs written only for tests: every way to send, to read messages, to call and to name things.

`CASES` names each with what to run it on. Their graph has a parallel edge, a self-loop, an isolated vertex:

    0 -> 1 (1.0), 0 -> 1 (2.5), 0 -> 2 (4.0), 1 -> 3 (2.0), 2 -> 3 (0.5), 3 -> 0 (3.0), 3 -> 3 (1.5), and 9
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from message_programs import (
    Combiner,
    FoldLoop,
    JoinedOffers,
    LastOne,
    Listed,
    ListedOffers,
    LowestOffer,
    Market,
    Narrow,
    Presence,
    SumCombiner,
    Truths,
    TwoFolds,
    UserCombiner,
)
from name_programs import Derived, Functions, Methods, Options, Reading, Tail, closure_program
from send_programs import (
    Alternatives,
    Carried,
    Census,
    Filtered,
    Forward,
    OwnId,
    Postman,
    Retiring,
    TwoSends,
    Walk,
    WideValues,
)

from sigps import Graph, Vertex, inf
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank


def kite(weight: Any = np.float64, ids: Any = (0, 1, 2, 3, 9)) -> Graph:
    """Return the common graph; `capacity` is a second edge column."""
    name = dict(zip((0, 1, 2, 3, 9), ids, strict=True))
    return Graph.from_edges(
        [name[v] for v in (0, 0, 1, 2, 3, 3, 0)],
        [name[v] for v in (1, 2, 3, 3, 0, 3, 1)],
        weights=np.array([1.0, 4.0, 2.0, 0.5, 3.0, 1.5, 2.5], dtype=weight),
        vertices=[name[9]],
        columns={"capacity": np.array([5, 7, 1, 2, 9, 4, 6], dtype=np.int32)},
    )


@dataclass(frozen=True)
class Case:
    """A program, its graph, and states worked out by hand (vertices 0, 1, 2, 3, 9), where they are."""

    program: Callable[[], Vertex]
    expected: dict[str, list[Any]] = field(default_factory=dict)
    graph: Callable[[], Graph] = kite
    max_supersteps: int | None = None


CASES: dict[str, Case] = {
    "narrow": Case(
        Narrow,
        {
            "total": [100, 200, 100, 300, -1],
            "halves": [50.0, 100.0, 50.0, 150.0, 0.25],
            "small": [-1, -1, -1, -1, 7],
            "odd": [True, False, True, True, False],
        },
    ),
    "truths": Case(
        Truths,
        {
            "any_true": [True, True, True, True, False],
            "all_true": [True, False, True, False, False],
            "count": [1, 1, 1, 2, 0],
            "number": [1, 2, 1, 3, 0],
        },
    ),
    "market": Case(
        Market,
        {
            "cheapest": [3.0, 1.0, 4.0, 0.5, inf],
            "dearest_final": [3.0, 2.5, 4.0, -5.0, -1.0],
            "amount": [9, 6, 7, 4, 0],
            "cost": [27.0, 20.0, 28.0, 9.0, 0.0],
            "is_final": [True, False, True, False, False],
            "seller": [3, 0, 0, 2, -1],
        },
    ),
    "two_folds": Case(TwoFolds, {"low": [0, 0, 0, 0, 9], "high": [3, 3, 3, 3, 9]}),
    "fold_loop": Case(
        FoldLoop,
        {
            "total": [7.0, 8.0, 9.0, 9.0, 1.0],
            "low": [3.0, 1.0, 4.0, 0.5, inf],
            "high": [3.0, 2.5, 4.0, 2.0, -inf],
            "flags": [101, 101, 111, 2, 100],
        },
    ),
    "last_one": Case(LastOne, {"total": [4, 2, 1, 9, 0]}),
    "listed": Case(
        Listed,
        {
            "count": [1, 1, 1, 2, 0],
            "total": [2.5, 2.0, 3.5, 1.5, 0.0],
            "second": [inf, 3.5, inf, 2.5, 0.0],
            "code": [22, 5, 22, 14, 0],
        },
    ),
    "listed_offers": Case(ListedOffers),
    "presence": Case(Presence),
    "tail": Case(Tail),
    "combiner": Case(
        Combiner,
        {
            "best": [6.0, 5.0, 8.0, 4.0, 0.0],
            "count": [22, 22, 22, 22, 0],
            "total": [6.25, 5.25, 8.25, 4.25, 0.25],
            "flags": [3, 3, 3, 3, 3],
        },
    ),
    "user_combiner": Case(UserCombiner, {"best": [3.0, 2.5, 4.0, 2.0, -2.0]}),
    "sum_combiner": Case(SumCombiner),
    "joined_offers": Case(JoinedOffers),
    "lowest_offer": Case(LowestOffer, {"price": [1.0, 0.0, 0.0, 0.0, inf], "seller": [3, 0, 0, 2, -1]}),
    "filtered": Case(Filtered),
    "alternatives_plain": Case(Alternatives),
    "alternatives": Case(lambda: Alternatives(plain=False)),
    "own_id": Case(OwnId),
    "two_sends": Case(TwoSends, {"total": [84, 78, 78, 210, 0]}),
    "postman": Case(Postman, {"heard": [0, 0, 0, 0, 5], "answer": [9, 9, 9, 9, -1]}),
    "forward": Case(Forward),
    "carried": Case(Carried, {"total": [0, 0, 6, 0, 0]}),
    "walk": Case(
        Walk,
        {
            "weight": [7.5, 2.0, 0.5, 4.5, 0.0],
            "loops": [0, 0, 0, 1, 0],
            "largest": [7, 1, 2, 9, -3],
            "nearest": [1, 3, 3, 0, -1],
            "heavy": [2, 0, 0, 0, 0],
            "code": [2, 4, 5, 2, 6],
            "from_here": [4, 2, 1, 9, 0],
        },
    ),
    "wide_values": Case(WideValues, {"seen": [2**63 + 1] * 4 + [0], "lowest": [2**62 + 1] * 5}),
    "methods": Case(Methods),
    "reading": Case(Reading),
    "functions": Case(
        Functions,
        {
            "digits": [99, 210, 321, 432, 1098],
            "collatz": [0, 1, 7, 2, 6],
            "swapped": [10, 20, 30, 40, 100],
            "clipped": [10.0, 10.0, 10.5, 10.5, 0.0],
        },
    ),
    "derived": Case(Derived, {"noted": [300, 300, 300, 300, 100]}),
    "closure": Case(closure_program, {"value": [27, 45, 27, 63, 3]}),
    "options": Case(Options, {"value": [4.0, 1005.0, 1006.0, 1007.0, 1013.0]}),
    "options_product": Case(
        lambda: Options(mode="product", limit=5.0, flag=False, verbose=True),
        {"value": [100.0, 1097.0, 1095.0, 1095.0, 1095.0]},
    ),
    "census": Case(
        Census,
        {
            "seen": [11.0, 11.0, 11.0, 11.0, 11.0],
            "flags": [1, 1, 1, 1, 1],
            "kept_seen": [2002, 2002, 2002, 2002, 2002],
        },
    ),
    "retiring": Case(Retiring, {"seen": [3, 44, 4, 22, 11], "whole": [0, 1, 1, 2, 5]}),
}


PROGRAMS: dict[str, Any] = {
    "BFS": lambda: BFS(source=0),
    "OutDegree": OutDegree,
    "PageRank": PageRank,
    "PageRank_tolerance": lambda: PageRank(tolerance=1e-6, dangling="leak"),
    "SSSP": lambda: SSSP(source=0),
    "WCC": WCC,
    **{name: case.program for name, case in CASES.items()},
}


COLUMNS = {name: values.dtype for name, values in kite().columns.items()}
