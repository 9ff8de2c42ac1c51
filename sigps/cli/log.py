"""`sigps log`: the state logs in a folder, whether they are damaged, and the states of a vertex in each."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sigps.errors import ConfigError

if TYPE_CHECKING:
    from sigps.system.checkpoint.history import KeptLog, VertexState

__all__ = ["log"]

Row = Sequence[str]


@click.command(short_help="Say what the state logs of a run hold.")
@click.argument("folder", metavar="FOLDER")
@click.option("--verify", is_flag=True, help="Read every part and compare it with its checksums.")
@click.option(
    "--vertex", "ids", multiple=True, metavar="ID", help="Show this vertex in every log. Repeatable."
)
def log(folder: str, verify: bool, ids: tuple[str, ...]) -> int:
    """List the finished state logs in FOLDER, the checkpoint.dir of a job, the oldest first.

    A log holds what stood before the superstep that it names. A field that holds a vertex shows its
    number in the order of ids, counted from 0. The code is 1 if --verify or --vertex meets a damaged log.
    """
    from sigps.group import world

    if verify and ids:
        raise ConfigError("--verify and --vertex are two questions: give one of them")
    code, lines = _vertices(folder, ids) if ids else _listing(folder, verify)
    if world().rank == 0:
        click.echo("\n".join(lines))
    return code


def _listing(folder: str, verify: bool) -> tuple[int, list[str]]:
    from sigps.graph.report import aligned
    from sigps.system.checkpoint.files import find_unfinished
    from sigps.system.checkpoint.history import damages, history

    rows: list[Row] = [
        ["run", "superstep", "program", "ranks", "device", "size", "saved", *["parts"] * verify]
    ]
    problems = []
    for kept in history(folder):
        wrong = [kept.problem] if kept.problem else []
        if verify and kept.manifest is not None:
            wrong = damages(kept.path, kept.manifest)
        rows.append(_row(kept) + ["damaged" if wrong else "whole"] * verify)
        problems += wrong
    lines = [*aligned(rows, left=(0, 2, 4, 6, 7)), *problems]
    begun = find_unfinished(Path(folder))
    if begun:
        names = ", ".join(path.name for path in begun)
        lines.append(f"begun and not finished, so never gone on from: {names}")
    return (1 if verify and problems else 0), lines


def _row(kept: KeptLog) -> list[str]:
    from sigps.graph.report import bytes_text
    from sigps.system.checkpoint.files import run_of, superstep_of

    manifest = kept.manifest
    if manifest is None:
        return [run_of(kept.path), str(superstep_of(kept.path)), "damaged", *"----"]
    saved = datetime.datetime.fromtimestamp(manifest.saved_at)
    return [
        manifest.run,
        str(manifest.superstep),
        manifest.program,
        str(len(manifest.parts)),
        manifest.device,
        bytes_text(manifest.num_bytes),
        f"{saved:%Y-%m-%d %H:%M:%S}",
    ]


def _vertices(folder: str, ids: tuple[str, ...]) -> tuple[int, list[str]]:
    from sigps.system.checkpoint.history import follow, history

    found, problems = follow(history(folder), ids)
    lines = [line for vertex, states in found.items() for line in _vertex_tables(str(vertex), states)]
    return (1 if problems else 0), [*lines, *problems]


def _vertex_tables(vertex: str, states: list[VertexState]) -> Iterator[str]:
    """Yield a table of one vertex for each run of logs with the same program and fields."""
    from sigps.graph.report import aligned

    for (run, program, fields), group in groupby(states, lambda s: (s.run, s.program, tuple(s.values))):
        yield f"vertex {vertex}, {program}, run {run}"
        rows: list[Row] = [["superstep", "status", *fields]]
        rows += [[str(s.superstep), s.status, *map(str, s.values.values())] for s in group]
        yield from aligned(rows, left=(1,))
