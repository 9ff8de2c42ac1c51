"""`sigps generate`, `convert`, `info` and `partition`: graphs without a program."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigps.cli.checks import load_option
from sigps.errors import ConfigError, nearest
from sigps.group import launched_rank

if TYPE_CHECKING:
    from sigps.graph import Graph
    from sigps.graph.packing.packer import Order

__all__ = ["convert", "generate", "info", "partition"]

_packed_option = click.option(
    "--packed",
    is_flag=True,
    help="Write a .sigps folder whose edges are bit-packed: 0.4 to 2.4 bytes each instead of 4.",
)
_order_option = click.option(
    "--order",
    default="better",
    show_default=True,
    type=click.Choice(["better", "given", "degree"]),
    help="Of packed rows: that of the vertices (given), as some runs that stream need, or by degree.",
)
_folder_option = click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="DIR",
    help="With --packed: a further folder for a share of the pages, on another disk; may be given several times.",
)
_memory_option = click.option(
    "--memory",
    metavar="BYTES",
    help="What building may take, such as 4GB: more edges wait on disk, in OUT's folder, and are sorted in pieces.",
)


@click.command(short_help="Generate a graph.")
@click.argument("name", metavar="GENERATOR")
@click.option("--opt", "options", multiple=True, metavar="KEY=VALUE", help="An option of it: scale=20.")
@click.option(
    "-o", "--output", required=True, metavar="PATH", help="A .sigps folder, or a file as for convert."
)
@_packed_option
@_folder_option
@_order_option
@_memory_option
def generate(
    name: str,
    options: tuple[str, ...],
    output: str,
    packed: bool,
    folders: tuple[str, ...],
    order: Order,
    memory: str | None,
) -> None:
    """Generate a graph: rmat, erdos_renyi, watts_strogatz, grid, path, star or complete."""
    from sigps.graph.generators.generate import generate as generate_graph
    from sigps.graph.generators.generate import write_by_degree
    from sigps.job.yaml_source import Source, override

    settings = override(Source("options", {}, {}), options, flag="--opt").data
    write = _writer(output, packed=packed, order=order, folders=folders)
    may_be_drawn = packed and order == "degree" and memory is None
    with _waiting(f"generating {name}"):
        report = write_by_degree(name, [output, *folders], **settings) if may_be_drawn else None
    if report is not None:
        click.echo(f"{report}\nwrote {', '.join([output, *folders])}")
        return
    with _waiting(f"generating {name}"):
        graph = generate_graph(name, memory=memory, scratch=Path(output).resolve().parent, **settings)
    _write(graph, output, write, folders=folders)


@click.command(short_help="Change the format of a graph.")
@click.argument("sources", metavar="IN", nargs=-1, required=True)
@click.argument("target", metavar="OUT")
@click.option("--vertices", metavar="FILE", help="Write all ids and the vertex columns to a CSV file, too.")
@_packed_option
@_folder_option
@_order_option
@_memory_option
@load_option
def convert(
    sources: tuple[str, ...],
    target: str,
    vertices: str | None,
    packed: bool,
    folders: tuple[str, ...],
    order: Order,
    memory: str | None,
    options: tuple[str, ...],
) -> None:
    """Read a graph and write it in the format that OUT's suffix names.

    .sigps is the native store (a folder that opens at once), .mtx Matrix Market, .graph METIS,
    and .txt, .tsv or .csv an edge list; .gz, .xz, .zst or .bz2 behind it compresses the file. IN is
    several folders where the pages of a packed store lie in them.
    """
    from sigps.graph.load import load
    from sigps.job.config import load_options

    settings = load_options(options)
    write = _writer(target, packed=packed, order=order, folders=folders)
    with _waiting(f"reading {', '.join(sources)}"):
        graph = load(sources, memory=memory, scratch=Path(target).resolve().parent, **settings)
    _write(graph, target, write, vertices, folders)


@click.command(short_help="Say what a graph is.")
@click.argument("paths", metavar="GRAPH", nargs=-1, required=True)
@click.option("--verify", is_flag=True, help="Compare every byte of a native store with its checksums.")
@load_option
def info(paths: tuple[str, ...], verify: bool, options: tuple[str, ...]) -> None:
    """Say what a graph is: vertices, edges, columns, ids, degrees, and what loading found.

    GRAPH is several folders where the pages of a packed store lie in them: how much is in each is said, too.
    """
    from sigps.graph.load import load, open_store
    from sigps.job.config import load_options

    settings = load_options(options)
    if verify and not Path(paths[0]).is_dir():
        raise ConfigError(f"--verify: {paths[0]} is no native store: only a .sigps folder holds checksums")
    with _waiting(f"reading {', '.join(paths)}"):
        graph = open_store(paths, verify="full") if verify else load(paths, **settings)
    _print_info(graph, paths)
    if verify:
        _say(graph, "every checksum is right")


@click.command(short_help="Divide a graph and say what that costs.")
@click.argument("paths", metavar="GRAPH", nargs=-1, required=True)
@click.option("-n", "num_parts", required=True, type=click.IntRange(min=1), help="How many parts.")
@click.option(
    "--method",
    type=click.Choice(["edges", "vertices", "hash", "bfs", "metis"]),
    default="edges",
    show_default=True,
    help="How to divide.",
)
@load_option
def partition(paths: tuple[str, ...], num_parts: int, method: str, options: tuple[str, ...]) -> None:
    """Divide a graph and print balance, cut edges, ghosts and bytes of each part.

    GRAPH is several folders where the pages of a packed store lie in them.
    """
    from sigps.graph.load import load
    from sigps.graph.partitioning.partition import partition as divide
    from sigps.graph.partitioning.report import measure
    from sigps.job.config import load_options

    settings = load_options(options)
    with _waiting(f"dividing {', '.join(paths)}"):
        graph = load(paths, **settings)
        report = measure(graph, divide(graph, num_parts, method))
    _say(graph, str(report))


def _waiting(what: str) -> AbstractContextManager[None]:
    """Show what is done in a terminal."""
    from sigps.report.progress import live_wait

    return live_wait(what, rank=launched_rank(os.environ))


def _writer(
    path: str, *, packed: bool, order: Order, folders: tuple[str, ...]
) -> Callable[[Graph, str], Any]:
    """Return what writes the format of a path's suffix, having checked that it can be written there."""
    from sigps.graph.formats.packed_store import save_packed
    from sigps.graph.formats.store import save
    from sigps.graph.formats.store_folders import given_folders
    from sigps.graph.formats.table import FORMATS

    def write_packed(graph: Graph, path: str) -> None:
        save_packed(graph, [path, *folders], order=order)

    writers: dict[str, Callable[[Graph, str], Any]] = {".sigps": write_packed if packed else save}
    writers |= {format.suffixes[0]: format.write for format in FORMATS.values() if format.write}
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in (".gz", ".xz", ".zst", ".bz2")]
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in writers:
        raise ConfigError(
            f"output {path}: no format has the suffix {suffix!r}{nearest(suffix, writers)} "
            f"There are {', '.join(writers)}"
        )
    if packed and suffix != ".sigps":
        raise ConfigError(f"--packed: {path} is no native store: only a .sigps folder has packed edges")
    if order != "better" and not packed:
        raise ConfigError(f"--order={order} is of packed edges: give --packed, too")
    if folders and not packed:
        raise ConfigError("--folder is of packed edges, which may lie on several disks: give --packed, too")
    given_folders([path, *folders])
    for output in (path, *folders):
        parent = Path(output).resolve().parent
        if not parent.is_dir():
            raise ConfigError(
                f"output {output}: there is no folder {parent}: make it, or choose another path"
            )
    return writers[suffix]


def _write(
    graph: Graph,
    path: str,
    write: Callable[[Graph, str], Any],
    vertices_path: str | None = None,
    folders: tuple[str, ...] = (),
) -> None:
    from sigps.graph.formats.store_header import is_store
    from sigps.graph.formats.text_output import write_vertices

    _say(graph, str(graph.report))
    with _waiting(f"writing {path}"):
        write(graph, path)
    if graph.vertex_columns and vertices_path is None and not is_store(Path(path)):
        names = ", ".join(graph.vertex_columns)
        _say(
            graph,
            f"vertex columns not written: {names} (--vertices FILE writes them; a native store, .sigps, holds them)",
        )
    if vertices_path is not None:
        write_vertices(graph, vertices_path)
    graph.group.barrier()
    _say(graph, f"wrote {', '.join([path, *folders])}")


def _print_info(graph: Graph, paths: tuple[str, ...]) -> None:
    """Print the account. Collective."""
    import numpy as np

    from sigps.graph.formats.store_header import describe_edges
    from sigps.graph.report import bytes_text

    degrees = graph.out_degrees()
    highest = graph.group.all_reduce(np.array([degrees.max(initial=0)]), "max")[0]
    num_bytes = graph.group.all_reduce(np.array([graph.nbytes]), "sum")[0]
    columns = ", ".join(f"{name} {column.dtype}" for name, column in graph.columns.items()) or "none"
    of_vertices = ", ".join(
        f"{name} {column.dtype}{list(column.shape[1:]) or ''}"
        for name, column in graph.vertex_columns.items()
    )
    mean = graph.num_edges / max(graph.num_vertices, 1)
    lines = [
        f"{'directed' if graph.directed else 'undirected'}",
        f"vertices       {graph.num_vertices:,}",
        f"stored edges   {graph.num_edges:,}",
        f"edge columns   {columns}",
        f"vertex columns {of_vertices or 'none'}",
        f"ids            {graph.ids.dtype}{', 0 to n - 1' if graph.ids.is_identity else ''}",
        f"out-degree     mean {mean:.2f}, highest {highest:,}",
        f"bytes          {bytes_text(float(num_bytes))}",
        f"load report    {graph.report}",
    ]
    if graph.report.format == "store":
        lines.insert(-1, f"on disk        {describe_edges(paths)}")
    _say(graph, "\n".join(lines))


def _say(graph: Graph, text: str) -> None:
    if graph.group.rank == 0:
        click.echo(text)
