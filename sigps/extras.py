"""Packages that only some users need: the error that names the extra which brings one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sigps.errors import ConfigError

__all__ = ["needs"]


@contextlib.contextmanager
def needs(package: str, extra: str = "io") -> Iterator[None]:
    """Turn a missing package into an error that says how to install it.

    Raises:
        ConfigError: If an import in the block fails.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"this needs {package}, which is not installed ({error}): pip install 'sigps[{extra}]'"
        ) from None
