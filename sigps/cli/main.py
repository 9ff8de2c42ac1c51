"""The command `sigps`: its subcommands, and how failures are printed and become exit codes.

Exit codes: 0 done; 1 a graph, device, exchange or output failed; 2 the command, the job or a parameter is wrong;
130 interrupted. A `SigpsError` is printed as its message; any other exception is a bug and shows its
traceback. Under `mpirun` only one rank prints.

Modules are imported when a command needs them, so `sigps --help` stays quick.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import click

from sigps.account import begin_account, process_age
from sigps.cli.doctor import doctor
from sigps.cli.explain import explain
from sigps.cli.graph import convert, generate, info, partition
from sigps.cli.log import log
from sigps.cli.plan.command import plan
from sigps.cli.run import run
from sigps.cli.serve import cancel, jobs, result, resume, serve, submit, suspend
from sigps.errors import ConfigError, SigpsError
from sigps.group import Group, MPIGroup, launched_rank, launched_ranks, world

__all__ = ["execute", "main", "sigps"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-v", "--verbose", count=True, help="Log what happens; twice for more.")
@click.version_option(package_name="sigps")
def sigps(verbose: int) -> None:
    """Run vertex programs on large graphs, on one process or under mpirun."""
    is_first = launched_rank(os.environ) == 0
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2) if is_first else 0]
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)


for command in (
    *(run, log, plan, explain, generate, convert, info, partition, doctor),
    *(serve, submit, jobs, cancel, suspend, resume, result),
):
    sigps.add_command(command)


def main() -> None:
    """Run the command that the process was started with, and exit."""
    begin_account(import_seconds=process_age())
    keep_interrupts()
    sys.exit(execute(sys.argv[1:]))


def keep_interrupts() -> None:
    """Raise Ctrl-C again where Python drops it, so that one is enough.

    What is raised in a destructor, or where a weak reference ends, is printed and ignored, KeyboardInterrupt too.
    """
    report = sys.unraisablehook

    def hear(dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            report(dropped)
            return
        again = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = hear


def execute(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Prints errors; raises none."""
    try:
        code = sigps.main(list(arguments) or ["--help"], prog_name="sigps", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.Abort:  # click makes this of Ctrl-C
        return _end(130, "interrupted")
    except click.ClickException as error:
        usage = error.ctx.get_usage() + "\n" if isinstance(error, click.UsageError) and error.ctx else ""
        return _end(error.exit_code, f"{usage}error: {error.format_message()}{_of_a_graph(error)}")
    except SigpsError as error:
        text = "\n".join([f"error: {error}", *getattr(error, "__notes__", ())])
        return _end(2 if isinstance(error, ConfigError) else 1, text)
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception:
        return _end(1, traceback.format_exc().rstrip())


def _of_a_graph(error: click.ClickException) -> str:
    """Return how an option of a graph is given, where it may have been given as one of the command."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None or error.possibilities:
        return ""
    takes = any("--opt" in parameter.opts for parameter in error.ctx.command.params)
    return f" An option of the graph is --opt {error.option_name.lstrip('-')}=VALUE" if takes else ""


def _end(code: int, text: str) -> int:
    """Print what ended the command, and end the ranks that may wait for this one in a collective.

    Where all ranks failed, rank 0 prints and all exit. Where some did not, the first rank to fail prints, then ends
    them all. Waits up to a second to find out which.
    """
    if launched_ranks(os.environ) <= 1:
        click.echo(text, err=True)
        return code
    group = _ranks()
    if not isinstance(group, MPIGroup):
        if launched_rank(os.environ) == 0:
            click.echo(text, err=True)
        return code
    if _all_fail(group):
        if group.rank == 0:
            click.echo(text, err=True)
        return code
    time.sleep(0.05 * group.rank)  # of several that fail together, the lowest prints
    click.echo(f"rank {group.rank}: {text}", err=True)
    sys.stderr.flush()
    group.abort(code)
    return code


def _ranks() -> Group | None:
    try:
        return world()
    except ConfigError:
        return None


def _all_fail(group: Any, patience_seconds: float = 1.0) -> bool:
    """Return whether every rank calls this within `patience_seconds`."""
    from mpi4py import MPI

    arrival = MPI.COMM_WORLD.Ibarrier()
    deadline = time.monotonic() + patience_seconds
    while not arrival.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
