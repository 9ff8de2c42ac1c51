"""`sigps explain`: what the compiler derives from a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sigps.cli.checks import load_option

if TYPE_CHECKING:
    from sigps.job.preparing import Precision
    from sigps.model.vertex import Vertex

__all__ = ["explain"]


@click.command(short_help="Say what the compiler derives from a program.")
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--param", "assignments", multiple=True, metavar="NAME=VALUE", help="A parameter of the program."
)
@click.option(
    "--graph",
    "graphs",
    multiple=True,
    metavar="GRAPH",
    help="Also say what a run on this graph would choose, and by which counts; once for each folder of its store.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "single", "double"]),
    default="auto",
    show_default=True,
    help="Of the run on the graph.",
)
@load_option
def explain(
    program: str,
    assignments: tuple[str, ...],
    graphs: tuple[str, ...],
    precision: Precision,
    options: tuple[str, ...],
) -> None:
    """Say what the compiler derives from a program, and why: combiner, outbox record, early exit.

    PROGRAM is package.module:Class or path/to/file.py:Class.
    """
    from sigps.compiler.explain import explain as explain_program
    from sigps.errors import ConfigError
    from sigps.job.importing import import_program
    from sigps.job.yaml_source import Source, override

    if options and not graphs:
        raise ConfigError("--opt says how a graph is read: name one with --graph")
    cls = import_program(program)
    params = override(Source("parameters", {}, {}), assignments, flag="--param").data
    click.echo(explain_program(cls, **params))
    if graphs:
        for line in _on_graph(cls, params, graphs, precision, options):
            click.echo(line)


def _on_graph(
    cls: type[Vertex],
    params: dict[str, Any],
    paths: tuple[str, ...],
    precision: Precision,
    options: tuple[str, ...],
) -> Iterator[str]:
    """Yield what engines would choose for a program by the counts of a graph."""
    from sigps.compiler.explain import example_of
    from sigps.compiler.frontend.analysis import analyse
    from sigps.engine.table import ENGINES
    from sigps.graph.load import load
    from sigps.job.config import load_options
    from sigps.job.preparing import precision_of, turned

    program = example_of(cls, params)
    graph = turned(load(paths, **load_options(options)), program)
    derived = analyse(program, precision_of(program, precision))
    yield f"\non {', '.join(paths)}: {graph.num_vertices:,} vertices, {graph.num_edges:,} stored edges"
    for spec in ENGINES:
        for name, text in spec.explained(derived, graph).items() if spec.is_compiled else ():
            yield f"  {name:<12} {text}"
