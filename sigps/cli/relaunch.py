"""A run in other processes: under a launcher that this one starts, and again from its logs when it fails.

    sigps run JOB.yaml --ranks 4 --retries 2

    attempt 1   mpirun -n 4 python -m sigps run JOB.yaml            a rank dies
    attempt 2   mpirun -n 4 python -m sigps run JOB.yaml --resume   from the newest log of attempt 1, to the end

This process loads no MPI and no graph. Attempts write to its standard output and error.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sigps.errors import ConfigError
from sigps.group import launched_ranks
from sigps.system.checkpoint.files import find_logs, superstep_of

__all__ = ["Ended", "command_of", "launch_command", "relaunch", "run_attempt"]

_FINAL = (0, 2, 130)  # done; the job is wrong, as it will be again; interrupted
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def launch_command(
    ranks: int | None, launcher: str, environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Return what stands before `run` and its options.

    Args:
        ranks: How many to start; None for one process without a launcher.
        launcher: The command that starts them, and options of it.
        environment: This process's.

    Raises:
        ConfigError: If this process was itself started as one of several ranks, or there is no such launcher.
    """
    if launched_ranks(environment) > 1:
        raise ConfigError(
            f"--ranks and --retries start the ranks themselves, and a launcher has started "
            f"{launched_ranks(environment)} of this command: leave mpirun out, or these options"
        )
    sigps = [sys.executable, "-P", "-m", "sigps"]  # -P: a random.py that lies here is not Python's
    if ranks is None:
        return sigps
    name, *options = _words(launcher)
    return [_found(name), *options, "-n", str(ranks), *sigps]


class Ended(NamedTuple):
    """How an attempt ended.

    Attributes:
        code: Its exit code; 128 and the signal's number where a signal ended it.
        by_request: Whether a signal to this process ended it.
    """

    code: int
    by_request: bool = False

    @property
    def may_be_retried(self) -> bool:
        """Whether to try again may help.

        >>> [Ended(code).may_be_retried for code in (0, 1, 2, 130, 137)]
        [False, True, False, False, True]
        """
        return not self.by_request and self.code not in _FINAL

    def __str__(self) -> str:
        try:
            cause = f" ({signal.Signals(self.code - 128).name})"
        except ValueError:
            cause = ""
        return f"ended with code {self.code}{cause}"


def relaunch(
    command: Sequence[str],
    retries: int,
    logs: Path | None,
    *,
    resume: bool,
    name: str,
    report: Callable[[str], None],
) -> int:
    """Run a command until it succeeds, cannot succeed, or has no retries left; return its exit code.

    An attempt after a failure goes on from the newest log that an earlier attempt finished, and begins anew if
    there is none: logs that lay there before the first attempt count only with `resume`.

    Args:
        command: `sigps run` with its options, without `--resume`.
        retries: How often to start it again at most.
        logs: The job's checkpoint.dir; None where it has none.
        resume: Whether the first attempt, too, goes on from the newest log.
        name: What messages call the job.
        report: Called with a line about each attempt that failed.
    """
    foreign = set() if resume or logs is None else set(find_logs(logs))
    ended = run_attempt([*command, *["--resume"] * resume])
    for attempt in range(2, retries + 2):
        if not ended.may_be_retried:
            return ended.code
        newest = _newest(logs, foreign)
        start = f"goes on from {newest}, superstep {superstep_of(newest)}" if newest else _ANEW
        report(f"{name}: attempt {attempt - 1} {ended}; attempt {attempt} of {retries + 1} {start}")
        ended = run_attempt([*command, *["--resume"] * (resume or newest is not None)])
    if retries and ended.may_be_retried:
        newest = _newest(logs, foreign)
        rest = f"--resume goes on from {newest}, superstep {superstep_of(newest)}" if newest else _NO_LOG
        report(f"{name}: attempt {retries + 1} {ended}, and was the last: remove the cause; {rest}")
    return ended.code


def run_attempt(command: Sequence[str]) -> Ended:
    """Run a command, pass signals on to it, wait, and return how it ended.

    Its processes are a group of their own, so that a Ctrl-C reaches them once: from here, not from the terminal.
    """
    caught: list[int] = []
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: Any = None) -> None:
        caught.append(number)
        for process in processes:
            process.send_signal(number)

    names = [getattr(signal, name) for name in _FORWARDED]
    heeded = {number for number in names if signal.getsignal(number) is not signal.SIG_IGN}
    before = {number: signal.signal(number, forward) for number in heeded}
    try:
        sys.stdout.flush()
        processes.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_end_with_parent)
        )
        for number in caught[:1]:  # it came before there was a process to pass it on to
            processes[0].send_signal(number)
        code = processes[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        return Ended(128 + caught[0], by_request=True)
    return Ended(code if code >= 0 else 128 - code)


def _end_with_parent() -> None:
    """Let the system end what this process becomes when its parent is killed; a launcher then ends its ranks."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


_PR_SET_PDEATHSIG = 1


def command_of(
    job_file: str,
    assignments: Sequence[str],
    output: str | None,
    dry_run: bool,
    verbose: int,
    others: Sequence[str] = (),
) -> list[str]:
    """Return the words of a `sigps run` that has these options, and others as they are.

    >>> command_of("job.yaml", ["engine.device=cpu"], None, True, 1)
    ['-v', 'run', 'job.yaml', '--set', 'engine.device=cpu', '--dry-run']
    """
    words = [*["-v"] * verbose, "run", job_file]
    for assignment in assignments:
        words += ["--set", assignment]
    if output is not None:
        words += ["--output", output]
    return [*words, *["--dry-run"] * dry_run, *others]


_NO_LOG = "no attempt finished a log"
_ANEW = f"begins at superstep 0: {_NO_LOG}"


def _newest(folder: Path | None, foreign: set[Path]) -> Path | None:
    if folder is None:
        return None
    return next((path for path in find_logs(folder) if path not in foreign), None)


def _words(launcher: str) -> list[str]:
    try:
        words = shlex.split(launcher)
    except ValueError as error:
        raise ConfigError(
            f"--launcher {launcher!r} cannot be split into words: {error}; close the quotes"
        ) from None
    if not words:
        raise ConfigError("--launcher is empty: name the command that starts ranks, such as mpirun")
    return words


def _found(name: str) -> str:
    """Return the path of a launcher: one beside this Python is the one that its mpi4py was installed with."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise ConfigError(
            f"--ranks: there is no {name} beside {sys.executable} or on PATH: pip install 'sigps[mpi]' brings "
            "mpirun; --launcher names another"
        )
    return found
