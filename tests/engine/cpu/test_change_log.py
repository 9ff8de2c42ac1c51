"""Entries that wait for their blocks, by hand."""

from __future__ import annotations

import numpy as np

from sigps.engine.cpu.change_log import ChangeLog, Changes

NUM_BLOCKS, PER_SUPERSTEP = 4, 40


def write(log: ChangeLog, superstep: int) -> None:
    """Let one entry for each block wait, in so many segments each: room is for less than one of them."""
    for number in range(PER_SUPERSTEP):
        targets = np.arange(NUM_BLOCKS, dtype=np.uint32)
        log.put(Changes(targets, targets, (np.full(NUM_BLOCKS, 100 * superstep + number),)))
    log.commit()


def test_what_came_last_is_not_old_whatever_its_segments() -> None:
    """Else each block would be unpacked once more for it, at the end of the superstep."""
    log = ChangeLog(np.arange(NUM_BLOCKS + 1), [np.dtype(np.int64)], room=64)
    num_arcs = np.full(NUM_BLOCKS, 1000)
    for superstep in range(3):
        write(log, superstep)
        assert log.crowded(num_arcs).tolist() == ([] if superstep == 0 else [3])  # which never takes any
        for block in range(NUM_BLOCKS - (superstep < 2)):
            first = 0 if block == 3 else 100 * superstep
            found = np.concatenate([changes.columns[0] for changes in log.take(block)])
            waited = [100 * s + i for s in range(superstep + 1) for i in range(PER_SUPERSTEP)]
            assert found.tolist() == [value for value in waited if value >= first]
