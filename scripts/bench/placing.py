"""Print what policies of placement come to in simulation: weighted speedup on 24 pairs of long and short programs.

    PYTHONPATH=tests/support python scripts/bench/placing.py

The programs' demands are assumed (`tests/support/shared_gpus.py`): the table compares policies, not machines.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from shared_gpus import PAIRS, arrivals, place_all

from sigps.serve.placing import PlacingPolicy

POOLS = [(1.0,), (1.0, 0.5), (1.0, 1.0, 0.5, 0.5), (1.0, 1.0, 1.0, 1.0), (1.0,) * 4 + (0.5,) * 4]
SEEDS = 3


def main() -> None:
    """Print one line for each pool, and one for each pair on the mixed pool of four."""
    policies = get_args(PlacingPolicy)
    print("speeds", *policies, sep="\t")
    for speeds in POOLS:
        print(" ".join(f"{s:g}" for s in speeds), *_line(PAIRS, speeds), sep="\t")
    print()
    for pair in PAIRS:
        print(" + ".join(pair), *_line([pair], POOLS[2]), sep="\t")


def _line(pairs: list[tuple[str, str]], speeds: tuple[float, ...]) -> list[str]:
    means = []
    for policy in get_args(PlacingPolicy):
        runs = [
            np.mean(place_all(policy, arrivals(pair, len(speeds), 200, seed), speeds))
            for pair in pairs
            for seed in range(SEEDS)
        ]
        means.append(f"{np.mean(runs):.3f}")
    return means


if __name__ == "__main__":
    main()
