"""What a vertex sends last stands for all that it sent: which programs that is proved of."""

from __future__ import annotations

import pytest
from cells import run_cell

from sigps.apps import SSSP, WCC
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.incremental import incremental
from sigps.compiler.proofs.sent_keys import added_to_key

CELL = """
class Least(Vertex, message={message}):
    limit: Param[{message}] = 4
    least: State[{message}] = {highest}

    def compute(self, messages):
        received = {begin} if self.superstep == 0 else min(messages, default=self.least)
        if received < self.least:
            self.least = received
            {send}
        self.vote_to_halt()
"""
FLOATS = {"message": "float", "highest": "inf", "begin": "self.limit"}
INTS = {"message": "int", "highest": "1_000_000", "begin": "self.id"}


@pytest.mark.parametrize(
    ("kind", "send", "added"),
    [
        (FLOATS, "self.send_to_neighbors(received)", 0),
        (FLOATS, "self.send_to_neighbors(received + 2.0)", 2),
        (FLOATS, "self.send_to_neighbors((received - 1.0) + 3.0)", 2),
        (INTS, "self.send_to_neighbors(received + 1)", 1),
        (INTS, "self.send_to_neighbors(received * 2)", None),
        (INTS, "self.send_to_neighbors(7 - received)", None),
        (INTS, "self.send_to_neighbors(self.id)", None),
        (INTS, "self.send_to_neighbors(received + 1 if self.superstep == 0 else received)", None),
        (INTS, "self.send_to_neighbors(received if self.superstep == 0 else received + 1)", None),
        (INTS, "self.send_to_neighbors(0 if self.superstep == 0 else received)", None),
        (INTS, "if received > self.id: self.send_to_neighbors(received)", None),
    ],
)
def test_what_is_added_to_keys(kind: dict[str, str], send: str, added: int | None) -> None:
    program = analyse(run_cell(CELL.format(**kind, send=send))["Least"]())
    assert (None if program.monotone is None else added_to_key(program)) == added
    found = incremental(program)
    assert (found.kind == "monotone") == (added is not None)
    assert found.record_is_key == (added == 0)


def test_the_keys_of_apps() -> None:
    assert added_to_key(analyse(SSSP(source=0))) == added_to_key(analyse(WCC())) == 0
