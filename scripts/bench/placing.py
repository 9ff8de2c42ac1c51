"""What policies of placement and of turns come to in simulation, on 24 pairs of long and short programs; one JSON file.

    PYTHONPATH=tests/support python scripts/bench/placing.py

The programs' demands are assumed (`tests/support/shared_gpus.py`): the tables compare policies, not machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table
from shared_gpus import PAIRS, arrivals, place_all, share_engines

from sigps.serve.placing import Demand, PlacingPolicy
from sigps.serve.turns import TurnPolicy

SEEDS = 3
MIXED = (1.0, 1.0, 0.5, 0.5)
TURNS: tuple[TurnPolicy, ...] = ("round_robin", "least_attained", "phase")
COPYING = (0.1, 0.5, 1.0)

PARTS: dict[str, Callable[[Demand], Demand]] = {
    "by_utilisation": lambda demand: Demand(demand.utilisation, 0.0),
    "by_bandwidth": lambda demand: Demand(0.0, demand.bandwidth),
}
"""Feedback that knows one of a program's demands alone."""


def main() -> None:
    """Simulate pools of 1 to 8 GPUs, of equal speed and half of them at half of it; pairs; and turns on one."""
    table = Table(RESULTS / "policies.json", machine_facts() | {"seeds": SEEDS, "jobs": 200})
    for count in range(1, 9):
        fast = -(-count // 2)
        for kind, speeds in (("equal", (1.0,) * count), ("mixed", (1.0,) * fast + (0.5,) * (count - fast))):
            if kind == "equal" or count > 1:
                add(table, PAIRS, speeds, work=f"placement, {kind} speeds", gpus=count)
    for pair in PAIRS:
        add(table, [pair], MIXED, work="placement, pairs", pair=" + ".join(pair))
    for copying in COPYING:
        found = {policy: mean(PAIRS, turns(policy, copying), 0.45) for policy in TURNS}
        row = {"work": "turns", "graph": "", "copying": copying, **found}
        table.add(row, f"{copying} of computing: " + "  ".join(f"{k} {v}" for k, v in found.items()))


def turns(policy: TurnPolicy, copying: float) -> Callable[[Sequence[tuple[float, str]]], list[float]]:
    """Return what simulates one device with a policy of turns."""
    return lambda coming: share_engines(policy, coming, copying=copying)


def add(table: Table, pairs: Sequence[tuple[str, str]], speeds: Sequence[float], **about: Any) -> None:
    """Add what each policy of placement comes to."""
    found = {
        policy: mean(pairs, lambda c, p=policy: place_all(p, c, speeds), 0.7, len(speeds))
        for policy in get_args(PlacingPolicy)
    }
    found |= {
        name: mean(pairs, lambda c, m=part: place_all("feedback", c, speeds, measured=m), 0.7, len(speeds))
        for name, part in PARTS.items()
    }
    text = "  ".join(f"{key} {value}" for key, value in found.items())
    told = " ".join(str(value) for key, value in about.items() if key != "work")
    table.add({"graph": "", **about, **found}, f"{told}: {text}")


def mean(
    pairs: Sequence[tuple[str, str]],
    simulate: Callable[[Sequence[tuple[float, str]]], list[float]],
    load: float,
    gpus: int = 1,
) -> float:
    """Return the mean weighted speedup over pairs and seeds, of 200 jobs each at exponential intervals."""
    runs = [
        np.mean(simulate(arrivals(pair, gpus, 200, seed, load))) for pair in pairs for seed in range(SEEDS)
    ]
    return round(float(np.mean(runs)), 3)


if __name__ == "__main__":
    main()
