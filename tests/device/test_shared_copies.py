"""Large arrays that threads go over in parts."""

from __future__ import annotations

import numpy as np
import pytest

from sigps.device import shared_copies
from sigps.device.cpu import Threads
from sigps.device.shared_copies import copying, in_parts


@pytest.fixture
def five_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(5)
    monkeypatch.setattr(shared_copies, "_LEAST", 10)
    monkeypatch.setattr(shared_copies, "shared_threads", lambda: threads)


@pytest.mark.usefixtures("five_threads")
@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (19, 1), (20, 2), (31, 3), (1003, 10)])
def test_parts_follow_each_other(size: int, count: int) -> None:
    def numbers(part: slice) -> list[int]:
        return list(range(size))[part]

    parts = in_parts((numbers, size), (numbers, 1 if size else 0))
    assert len(parts) == count + 1
    assert [i for part in parts[:-1] for i in part] == list(range(size))


@pytest.mark.usefixtures("five_threads")
def test_copies_are_in_the_type_that_is_asked_for() -> None:
    values, narrow, wide = np.arange(2000)[::-2], np.zeros(1000, np.uint32), np.zeros(1000)
    in_parts(copying(narrow, values), copying(wide, values))
    assert narrow.tolist() == wide.tolist() == list(range(1999, 0, -2))
