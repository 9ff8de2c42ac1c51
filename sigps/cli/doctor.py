"""`sigps doctor`: what this machine has, what sigps would choose, and what to install for more."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sigps.errors import ConfigError

__all__ = ["doctor"]

_MANY_EDGES = 1 << 62
"""More than any engine needs to be considered."""


@click.command(short_help="Say what this machine has and what a run would use.")
@click.option("--warm", "warms", is_flag=True, help="Compile all programs of sigps.apps into the cache.")
def doctor(warms: bool) -> None:
    """Print versions, processors, MPI, GPUs and folders, and which device and transport a run would use."""
    if warms:
        _warm()
        return
    from sigps.engine.table import engine_here
    from sigps.group import world
    from sigps.group.watch import listening_address

    group = world()
    ranks = []
    if group.size > 1:  # what `choose_transport` needs of each rank, on a GPU where it can have one
        ranks = group.all_gather(engine_here(_MANY_EDGES).facts_of_rank(group.rank, 1, alone=False))
    hosts, address = listening_address(group)
    if group.rank == 0:
        for name, text in _findings(ranks, hosts, address):
            click.echo(f"{name:<12} {text}")


def _warm() -> None:
    """Fill the cache of compiled code, and say with what."""
    from sigps.cli.warm import warm
    from sigps.native.cache import cache_dir, find_obstacle

    if obstacle := find_obstacle(cache_dir()):
        raise ConfigError(f"nothing can be kept: {obstacle}. SIGPS_CACHE_DIR names another folder")
    for device, count, failed in warm():
        click.echo(f"{device}: {count} programs of sigps.apps are in {cache_dir()}")
        for text in failed:
            click.echo(f"  not {text}")


def _findings(ranks: list[dict[str, Any]], hosts: list[str], address: str) -> Iterator[tuple[str, str]]:
    from sigps.device.cpu import available_cores
    from sigps.group import world
    from sigps.native.cache import cache_dir, find_obstacle

    num_cores = available_cores()
    yield "sigps", f"{_version('sigps')} in {Path(__file__).parents[1]}"
    yield "python", f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    yield "packages", ", ".join(f"{name} {_version(name)}" for name in ("numpy", "llvmlite"))
    extras = ("pyarrow", "pandas", "scipy", "zstandard", "pymetis")
    missing = [name for name in extras if _version(name) == "absent"]
    hint = f"absent: {', '.join(missing)}; pip install 'sigps[io]'" if missing else "all of [io] is here"
    yield "files", hint
    yield "cpu", f"{os.cpu_count()} cores, {num_cores} for this process"
    yield "mpi", _mpi()
    yield "gpu", _gpu()
    yield "cache", f"{cache_dir()} ({find_obstacle(cache_dir()) or 'yours alone'}); SIGPS_CACHE_DIR moves it"
    size = world().size
    yield "device", _device(max(1, num_cores // hosts.count(hosts[0])), size)
    yield "transport", f"{size} rank{'s' * (size > 1)}: {_transport(ranks)}"
    yield "hosts", _placement(hosts)
    yield "watch", _watch(hosts, address)


def _placement(hosts: list[str]) -> str:
    """Say which ranks are on which host."""
    ranks = {host: [str(rank) for rank, name in enumerate(hosts) if name == host] for host in hosts}
    return "; ".join(f"{host}: {', '.join(own)}" for host, own in ranks.items())


def _watch(hosts: list[str], address: str) -> str:
    """Say on which address rank 0 listens for the others, by which ranks watch each other."""
    from sigps.group.interfaces import VARIABLE

    if len(hosts) == 1:
        return "one rank: nothing listens"
    return f"rank 0 on {hosts[0]} listens on {address}, a free port each; {VARIABLE} chooses another"


def _transport(ranks: list[dict[str, Any]]) -> str:
    """Say which transport a run would use, and why."""
    from sigps.system.transport import choose_transport, reason_against_nccl, reason_against_peers

    if not ranks:
        return "none is needed"
    if all(rank["device"] == "cpu" for rank in ranks):
        return "mpi, through host memory"
    chosen, no_peers = choose_transport(ranks, "auto"), reason_against_peers(ranks)
    if chosen == "mpi":
        return f"mpi, through host memory ({no_peers}; NCCL: {reason_against_nccl(ranks)})"
    if chosen == "nccl":
        return f"nccl, from GPU to GPU ({no_peers})"
    by_hosts = choose_transport(ranks, "auto", by_hosts=True)
    others = "values on edges and common_neighbors()"
    return f"peer, from GPU to GPU; {by_hosts} for {others}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _mpi() -> str:
    """Say which MPI a run would load; loads the library, starts nothing."""
    install = "pip install 'sigps[mpi]' brings mpi4py and an MPI library"
    if importlib.util.find_spec("mpi4py") is None:
        return f"mpi4py is absent: {install}"
    try:
        from mpi4py import rc

        rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return f"mpi4py {_version('mpi4py')} finds no MPI library ({error}): {install}"
    library = " ".join(MPI.Get_library_version().split()[:3])
    beside = Path(sys.executable).with_name("mpirun")
    launcher = shutil.which("mpirun") or (str(beside) if beside.exists() else None)
    start = (
        f"start ranks with {launcher} -n N sigps run JOB.yaml" if launcher else f"mpirun is absent: {install}"
    )
    return f"mpi4py {_version('mpi4py')}, {library}; {start}"


def _gpu() -> str:
    """Name the NVIDIA GPUs that the driver shows."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "no NVIDIA driver is installed"
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.split(
            "\n"
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"the NVIDIA driver does not answer: {error}"
    names = [line.strip() for line in found if line.strip()]
    return f"{len(names)}: {'; '.join(names)}" if names else "the NVIDIA driver shows none"


def _device(num_threads: int, num_ranks: int) -> str:
    """Say which device a run would use."""
    from sigps.engine.table import ENGINES, engine_here

    on_cpu = f"{engine_here(0).device}, {num_threads} threads a rank"
    chosen = engine_here(_MANY_EDGES)
    if chosen is engine_here(0):
        lacking = [f"{spec.device} cannot be used: {spec.missing()}" for spec in ENGINES if spec.missing()]
        return "; ".join([f"auto is {on_cpu}", *lacking])
    name = chosen.device
    if num_ranks > 1:
        return f"auto is {name} where each rank has a GPU of its own and a large enough graph, else {on_cpu}"
    return (
        f"auto is {name} from {chosen.pays_from_edges:,} edges where the program can run there, else {on_cpu}"
    )
