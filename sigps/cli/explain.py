"""`sigps explain`: what the compiler derives from a program."""

from __future__ import annotations

import click

__all__ = ["explain"]


@click.command(short_help="Say what the compiler derives from a program.")
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--param", "assignments", multiple=True, metavar="NAME=VALUE", help="A parameter of the program."
)
def explain(program: str, assignments: tuple[str, ...]) -> None:
    """Say what the compiler derives from a program, and why: combiner, outbox record, early exit.

    PROGRAM is package.module:Class or path/to/file.py:Class.
    """
    from sigps.compiler import explain as explain_program
    from sigps.job.importing import import_program
    from sigps.job.yaml_source import Source, override

    cls = import_program(program)
    params = override(Source("parameters", {}, {}), assignments, flag="--param").data
    click.echo(explain_program(cls, **params))
