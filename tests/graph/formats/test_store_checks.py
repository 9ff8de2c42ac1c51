"""Checksums of stored arrays, and stores that were damaged or crafted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import store_mutations
from crafted_stores import sums_of
from hypothesis import given
from hypothesis import strategies as st

from sigps.graph.formats.store_checks import checksum


@given(st.binary(max_size=40), st.data())
def test_sums_find_one_and_two_changed_words(raw: bytes, data: st.DataObject) -> None:
    whole = np.frombuffer(raw, dtype=np.uint8)
    highest, sums = checksum(whole)
    words = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
    assert (highest, sums) == (max(words, default=0), sums_of(raw))
    assert checksum(np.frombuffer(b"x" + raw, dtype=np.uint8)[1:]) == (highest, sums)  # not aligned
    changed = whole.copy()
    for _ in range(2 if words else 0):
        at = 4 * data.draw(st.integers(0, len(words) - 1))
        changed[at : at + 4] ^= data.draw(st.integers(0, 255))
    assert (checksum(changed)[1] == sums) == (changed.tobytes() == raw)


def test_changed_stores_are_refused_or_right_and_end_no_process() -> None:
    command = [sys.executable, store_mutations.__file__, "3", "120"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
