"""The file of a server, `pool.yaml`: its socket, devices, graphs, programs and tenants, checked."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from sigps.errors import ConfigError
from sigps.host_memory import bytes_of
from sigps.job.config import Bytes, Count, GraphSection, Section, check_job, validated
from sigps.job.importing import import_program
from sigps.job.yaml_source import Source, read_yaml
from sigps.model.vertex import Vertex
from sigps.serve.wire import default_socket

_FORM = "a server's file is a YAML mapping ('graphs: ...', 'tenants: ...')"

__all__ = ["HttpSection", "OwnCodeSection", "PoolFile", "TenantSection", "read_pool_file"]


class OwnCodeSection(Section):
    """What a process of a tenant's own code may take: private memory, seconds of a lease, and of all threads.

    With `gpu_memory` it runs on a GPU, of which it may take so much; with `ranks` a process on each of so many devices.
    """

    memory: Bytes = "2GB"
    lease_seconds: Annotated[float, Field(gt=0)] = 60.0
    cpu_seconds: Count = 3600
    gpu_memory: Bytes | None = None
    ranks: Count = 1


class TenantSection(Section):
    """A tenant's share and limits: the weight, jobs that have not ended, and bytes that these take by themselves.

    With `own_code` programs that the server's file does not name run for the tenant, each in a process of its own.
    """

    weight: Annotated[float, Field(gt=0)] = 1.0
    jobs: Count = 64
    memory: Bytes | None = None
    own_code: OwnCodeSection | None = None

    @field_validator("own_code", mode="before")
    @classmethod
    def _permitted(cls, value: Any) -> Any:
        return {True: OwnCodeSection(), False: None}.get(value, value) if isinstance(value, bool) else value

    @property
    def num_bytes(self) -> int | None:
        """The most bytes; None without a limit."""
        return None if self.memory is None else bytes_of(self.memory, "memory")


class HttpSection(Section):
    """Where the server also answers HTTP, and the file of the token that clients must know.

    An address that other machines reach is refused without `anywhere`: nothing that crosses is encrypted.
    """

    port: Annotated[int, Field(ge=0, le=65535)]
    host: str = "127.0.0.1"
    token: str | None = None
    anywhere: bool = False


class _Keys(Section):
    socket: str | None = None
    devices: str | list[str] = "auto"
    memory: Bytes | None = None
    quantum: Annotated[float, Field(gt=0)] = 0.01
    turns: Literal["fair_share", "round_robin", "least_attained"] = "fair_share"
    placing: Literal["least_memory", "round_robin", "weighted_times"] = "least_memory"
    lanes: Literal["auto", "never"] = "auto"
    threads: Count | None = None
    graphs: dict[str, dict[str, Any]]
    programs: list[str] = ["sigps.apps:*"]
    tenants: dict[str, TenantSection] = {}
    default: TenantSection | None = TenantSection()
    results: Bytes = "1GB"
    snapshots: str | None = None
    page: str | None = None
    metrics: str | None = None
    every: Annotated[float, Field(ge=1)] = 5.0
    http: HttpSection | None = None


@dataclass(frozen=True)
class PoolFile:
    """What a server is to do.

    Attributes:
        socket: The path of its Unix socket.
        options: Arguments of `sigps.pool`.
        graphs: Where each graph comes from, by name; paths are absolute.
        programs: The classes that may run, by what a client may call them.
        tenants: Limits of tenants that are named.
        others: Those of every other tenant; None where there are no others.
        result_bytes: Of results that are kept until clients fetch them; older ones go first.
        page: The path of the HTML page in which the server shows itself; None for none.
        metrics: The path of its metrics for Prometheus; None for none.
        every: Seconds between these files.
        http: Where it answers HTTP, with the path of its token; None where it does not.
    """

    socket: str
    options: Mapping[str, Any]
    graphs: Mapping[str, GraphSection]
    programs: Mapping[str, type[Vertex]]
    tenants: Mapping[str, TenantSection]
    others: TenantSection | None
    result_bytes: int
    page: str | None
    metrics: str | None
    every: float
    http: HttpSection | None = None


def read_pool_file(path: str | Path, socket: str | None = None) -> PoolFile:
    """Read and check the file of a server; imports its programs, reads no graph.

    Args:
        path: The YAML file; relative paths in it start at its folder.
        socket: Replaces its socket.

    Raises:
        ConfigError: If the file cannot be read, breaks a rule, or a program cannot be imported.
    """
    path = Path(path)
    try:
        source = read_yaml(path.read_text(encoding="utf-8"), str(path), _FORM)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from None
    others_refused = "default" in source.data and source.data["default"] is None
    keys = validated(_Keys, source, {k: v for k, v in source.data.items() if v is not None})
    folder = path.resolve().parent
    where = default_socket() if keys.socket is None else str(folder / Path(keys.socket).expanduser())
    memory = None if keys.memory is None else bytes_of(keys.memory, "memory")
    snapshots = None if keys.snapshots is None else str(folder / Path(keys.snapshots).expanduser())
    options = keys.model_dump(include={"devices", "quantum", "turns", "placing", "lanes", "threads"})
    options |= {"memory": memory, "snapshots": snapshots}
    return PoolFile(
        socket=where if socket is None else os.path.abspath(socket),
        options=options,
        graphs={name: _graph(source, name, folder) for name in keys.graphs},
        programs=_programs(keys.programs, folder),
        tenants=keys.tenants,
        others=None if others_refused else keys.default,
        result_bytes=bytes_of(keys.results, "results"),
        page=None if keys.page is None else str(folder / Path(keys.page).expanduser()),
        metrics=None if keys.metrics is None else str(folder / Path(keys.metrics).expanduser()),
        every=keys.every,
        http=_http(keys.http, folder, where if socket is None else os.path.abspath(socket)),
    )


def _http(section: HttpSection | None, folder: Path, socket: str) -> HttpSection | None:
    """Return the section with the path of its token: beside the socket where it names none."""
    if section is None:
        return None
    token = f"{socket}.token" if section.token is None else str(folder / Path(section.token).expanduser())
    return section.model_copy(update={"token": token})


def _graph(source: Source, name: str, folder: Path) -> GraphSection:
    """Return one of the graphs, checked as that of a job is."""
    origins = {
        ("graph", *keys[2:]): origin
        for keys, origin in source.origins.items()
        if keys[:2] == ("graphs", name)
    }
    data = {"program": "none:None", "graph": source.data["graphs"][name]}
    return check_job(Source(f"{source.name}, graph {name!r}", data, origins), folder).graph


def _programs(specs: list[str], folder: Path) -> dict[str, type[Vertex]]:
    """Return the classes that may run: by their names in the file, and by those that Python gives them."""
    found: dict[str, type[Vertex]] = {}
    for spec in specs:
        if spec == "sigps.apps:*":
            apps = importlib.import_module(
                "sigps.apps"
            )  # which imports all public names, and so this package's
            values = {f"sigps.apps:{name}": getattr(apps, name) for name in apps.__all__}
            found |= {k: v for k, v in values.items() if isinstance(v, type) and issubclass(v, Vertex)}
        else:
            found[spec] = import_program(spec, folder)
    return {f"{cls.__module__}:{cls.__qualname__}": cls for cls in found.values()} | found
