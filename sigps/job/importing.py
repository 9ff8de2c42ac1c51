"""From `package.module:Class` or `path/to/file.py:Class` to the vertex class, or the function, that it names."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sigps.errors import ConfigError, SigpsError
from sigps.model.vertex import Vertex

__all__ = ["import_named", "import_program", "name_of", "stop_if_imported"]

log = logging.getLogger(__name__)

_OF_FILES = "sigps_program_"

_FORM = "write package.module:Class, as in sigps.apps:PageRank, or path/to/file.py:Class"


def import_program(spec: str, folder: Path | None = None) -> type[Vertex]:
    """Import the vertex class that a command names, as `import_named`; refuse functions.

    Raises:
        ConfigError: If there is no such file, module or class, if its import fails, or if the class is
            not a `Vertex`.

    Example:
        >>> import_program("sigps.apps:PageRank").__name__
        'PageRank'
    """
    found = import_named(spec, folder)
    if isinstance(found, type):
        return found
    raise ConfigError(f"program {spec!r} is a function, which runs programs: name the class of one of them")


def import_named(spec: str, folder: Path | None = None) -> type[Vertex] | Callable[..., Any]:
    """Import the vertex class that a job names, or the function of a graph. Runs the module's code, as any import does.

    A file is run up to its first `sigps.run()`: a script need not guard it.

    The file's folder, or the current directory for a module, joins the end of `sys.path`, so that the
    program can import what lies beside it.

    Args:
        spec: `package.module:Class` or `path/to/file.py:Class`.
        folder: Where a relative file path starts; the current directory by default.

    Raises:
        ConfigError: If there is no such file, module or name, if its import fails, or if it is neither a subclass of
            `Vertex` nor a function.

    Example:
        >>> import_named("sigps.apps:closeness").__name__
        'closeness'
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not name:
        raise ConfigError(f"program {spec!r} names no class: {_FORM}")
    is_file = place.endswith(".py") or "/" in place
    module = _from_file(spec, (folder or Path.cwd()) / place) if is_file else _from_package(spec, place)
    found = getattr(module, name, None)
    if found is Vertex:
        raise ConfigError(f"program {spec!r}: Vertex is the base class: name a subclass of it")
    if (isinstance(found, type) and issubclass(found, Vertex)) or inspect.isfunction(found):
        return found
    programs = _programs(module)
    near = difflib.get_close_matches(name, programs, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    what = f"has no class {name!r}" if found is None else f"{name} is no subclass of sigps.Vertex"
    offered = f"It has: {', '.join(programs)}" if programs else "It has no vertex programs"
    raise ConfigError(f"program {spec!r}: {place} {what}{hint} {offered}")


def name_of(cls: type[Vertex]) -> str | None:
    """Return what imports a class in another process: of a script its file, else its module; None where nothing does.

    Example:
        >>> name_of(import_program("sigps.apps:PageRank"))
        'sigps.apps.pagerank:PageRank'
    """
    module = sys.modules.get(cls.__module__)
    path = getattr(module, "__file__", None)
    if getattr(module, cls.__qualname__, None) is not cls:
        return None
    if cls.__module__ != "__main__" and not cls.__module__.startswith(_OF_FILES):
        return f"{cls.__module__}:{cls.__qualname__}"
    return None if path is None else f"{os.path.abspath(path)}:{cls.__qualname__}"


def _from_package(spec: str, place: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return importlib.import_module(place)
    except SigpsError:
        raise
    except ModuleNotFoundError as error:
        # The module itself, or a package it lies in, is missing; not something that it imports.
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise ConfigError(
                f"program {spec!r}: there is no module {error.name!r} in this Python or in {Path.cwd()}: "
                f"{_FORM}"
            ) from None
        raise ConfigError(_import_failed(spec, error)) from error
    except Exception as error:
        raise ConfigError(_import_failed(spec, error)) from error


def _from_file(spec: str, path: Path) -> ModuleType:
    """Run the file anew each time, so that an edited class replaces the earlier one."""
    path = path.resolve()
    if not path.is_file():
        raise ConfigError(f"program {spec!r}: there is no file {path}: {_FORM}")
    # A name of its own: a file called random.py must not replace Python's module.
    name = f"{_OF_FILES}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    _add_to_path(path.parent)
    description = importlib.util.spec_from_file_location(name, path)
    if description is None or description.loader is None:
        raise ConfigError(f"program {spec!r}: {path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    try:
        with _without_runs():
            description.loader.exec_module(module)
    except _RunReachedError:
        log.info("%s calls sigps.run() where it is imported: what stands before is used", path)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, SigpsError):
            raise
        raise ConfigError(_import_failed(spec, error)) from error
    return module


class _RunReachedError(BaseException):
    """A script that is imported for a class in it came to its `sigps.run()`. No `except Exception` of its stops it."""


_imports: list[None] = []


@contextmanager
def _without_runs() -> Iterator[None]:
    """Let `sigps.run()` end the script that calls it, inside."""
    _imports.append(None)
    try:
        yield
    finally:
        _imports.pop()


def stop_if_imported() -> None:
    """End the script that calls `sigps.run()` while a command imports it for a class."""
    if _imports:
        raise _RunReachedError


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _import_failed(spec: str, error: Exception) -> str:
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"program {spec!r} cannot be imported: {type(error).__name__}: {message} ({where})"


def _programs(module: ModuleType) -> list[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Vertex) and value is not Vertex
    )
