"""A program of the pool's own process, on several of its devices: ranks that import its class."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigps.errors import ConfigError
from sigps.job.importing import name_of
from sigps.model.vertex import Vertex
from sigps.serve.devices import SharedDevice
from sigps.serve.own_code import OwnCode
from sigps.serve.own_ranks import check_launcher

__all__ = ["TrustedProgram", "engine_of_ranks", "trusted_program"]

_OF_ONE_PROCESS = {
    "trace": "what is recorded stays with the rank that records it",
    "gather": "a job of a pool has its whole result",
}


@dataclass(frozen=True)
class TrustedProgram(OwnCode):
    """A program that this process has, too: nothing limits its ranks but the bytes by which it is admitted.

    Attributes:
        engine: On which devices it runs.
        given: Its parameters and the run's options, pickled: they go from this process to its children alone.
    """

    engine: str = ""
    given: bytes = b""

    def runs_on(self, engine: str) -> bool:
        return engine == self.engine

    def task(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        return {"path": list(sys.path)}, self.given


def trusted_program(
    program: Vertex, options: Mapping[str, Any], num_ranks: int, engine: str
) -> TrustedProgram:
    """Return a program as ranks get it.

    Args:
        program: With its parameters.
        options: Of `sigps.run`.
        num_ranks: How many there are.
        engine: On which devices they run.

    Raises:
        ConfigError: If other processes cannot import its class, or be given its parameters, or an option is for one
            process.
    """
    check_launcher()
    for name, why in _OF_ONE_PROCESS.items():
        if name in options:
            raise ConfigError(f"{name}= is not for a job on several ranks: {why}")
    cls = type(program)
    spec = name_of(cls)
    if spec is None:
        raise ConfigError(
            f"ranks={num_ranks}: other processes cannot import {cls.__qualname__}, which no file or module has at its "
            "top level. Put the class into a file"
        )
    try:
        given = pickle.dumps({"params": program.params, "options": dict(options)})
    except Exception as error:  # whatever a value's own pickling raises
        raise ConfigError(
            f"ranks={num_ranks}: a parameter or option cannot be sent to other processes: {error}"
        ) from None
    return TrustedProgram(spec, {}, os.getcwd(), None, None, None, 0, num_ranks, engine, given)


def engine_of_ranks(devices: Sequence[SharedDevice], num_ranks: int) -> str:
    """Return the first kind of device of which there are enough, else the first. Pure."""
    engines = [device.engine for device in devices]
    return next((engine for engine in engines if engines.count(engine) >= num_ranks), engines[0])
