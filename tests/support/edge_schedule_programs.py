"""Which of the programs that all ways of running agree on may go by edge, which their analysis tells."""

from __future__ import annotations

from equality_programs import PROGRAMS, program_for

from sigps.compiler.frontend.analysis import analyse

BY_EDGE = [
    name for name, made in PROGRAMS.items() if analyse(program_for(name, "path")).edge_obstacle is None
]

NO_ATOMIC = {
    "market": "32 bytes that combine as a whole",
    "product": "a combiner that is a function",
    "largest_of_each": "48 bytes that combine as a whole",
}
"""Of these, those that a GPU refuses, and what it says."""

BY_EDGE_ON_GPUS = [name for name in BY_EDGE if name not in NO_ATOMIC]
