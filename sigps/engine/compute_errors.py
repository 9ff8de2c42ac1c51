"""The error of a fault: arithmetic that had no result, or a loop that the user has interrupted."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import ComputeError
from sigps.model.vertex import Aggregator
from sigps.native.builder import Site
from sigps.native.kernel import LoopFaultError
from sigps.native.operators import PROBLEMS, Fault
from sigps.native.primitives import sender

__all__ = ["KeptFault", "error_at", "error_in_loop", "error_of", "id_of", "master_error_of"]

_PACKAGE = str(Path(__file__).parents[1])
_APPS = f"{os.sep}apps{os.sep}"


class KeptFault(NamedTuple):
    """A fault that a partition on a GPU kept.

    Attributes:
        number: Its position in the sites of the program's functions, from 1; 0 where there is none.
        superstep: When it happened.
        is_of_one: Whether it is one vertex's.
        vertex_id: That one's id, as compute() names it.
    """

    number: int
    superstep: int
    is_of_one: bool
    vertex_id: int


def error_of(
    site: Site, vertex_id: int | None, superstep: int, aggregators: Sequence[Aggregator[Any]] = ()
) -> BaseException:
    """Return the error of a fault.

    Args:
        site: Where it stands, and its kind.
        vertex_id: The vertex, as compute() names it; None where it belongs to none.
        superstep: The superstep.
        aggregators: The program's: what stands where one is declared is its sum.
    """
    file, line, kind = site
    if kind == Fault.INTERRUPTED:
        return KeyboardInterrupt(f"{file}:{line}")
    who = "messages" if vertex_id is None else f"vertex {vertex_id}"
    who = next((f"aggregator {a.name!r}" for a in aggregators if a.place == (file, line)), who)
    return ComputeError(PROBLEMS[kind], who=who, superstep=superstep, file=file, line=line)


def error_in_loop(
    fault: LoopFaultError,
    subgraph: Subgraph,
    superstep: int,
    aggregators: Sequence[Aggregator[Any]] = (),
) -> BaseException:
    """Return the error of a fault of a loop over a partition's vertices.

    A fault of the edge function is its sender's, in the superstep before: loops call it where the message is read.
    """
    lid = fault.at
    if lid < -1:
        lid, superstep = int(sender(lid)), max(superstep - 1, 0)
    return error_of(fault.site, id_of(subgraph, lid) if lid >= 0 else None, superstep, aggregators)


def master_error_of(site: Site, name: str, superstep: int) -> ComputeError:
    """Return the error of a fault of master() or next_phase(), by its name, after a superstep."""
    file, line, kind = site
    return ComputeError(PROBLEMS[kind], who=f"{name}()", superstep=superstep, file=file, line=line)


def error_at(error: ArithmeticError, who: str, superstep: int, place: tuple[str, int]) -> ComputeError:
    """Return what compiled code raises where arithmetic has no result: at the user's line, or the given one."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [f for f in frames if not f.filename.startswith(_PACKAGE) or _APPS in f.filename]
    file, line = (users[-1].filename, users[-1].lineno or 0) if users else place
    return ComputeError(str(error), who=who, superstep=superstep, file=file, line=line)


def id_of(subgraph: Subgraph, lid: int) -> int:
    """Return a vertex's id as compute() names it.

    Args:
        subgraph: The partition.
        lid: The local id that the vertex has on the host.
    """
    return int(subgraph.ids[lid]) if subgraph.ids.size else lid
