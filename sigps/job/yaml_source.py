"""YAML as plain data, with the place where each key was written.

Only YAML's plain types are read, so a file cannot run code. A key written twice is refused, since YAML
would silently keep the last, and `1e-6` is a number, which YAML 1.1 takes for text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from sigps.errors import ConfigError

__all__ = ["Source", "override", "parse_value", "read_yaml"]

Path = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A mapping and the place where each of its keys was written.

    Attributes:
        name: The file's name, for messages.
        data: The mapping, as plain Python values.
        origins: For each key path, `"line 4"` or `"--set engine.device=cpu"`.
    """

    name: str
    data: dict[str, Any]
    origins: dict[Path, str]

    def origin(self, path: Path) -> str:
        """Return where a key was written, or the nearest key around it; empty where none was."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.origins:
                return self.origins[path[:end]]
        return ""


def read_yaml(
    text: str, name: str, form: str = "a job is a YAML mapping ('program: ...', 'graph: ...')"
) -> Source:
    """Read one YAML mapping.

    Args:
        text: What the file holds.
        name: The file's, for messages.
        form: What such a file is, for messages.

    Raises:
        ConfigError: If it is not YAML, not one mapping, or names a key twice.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{name}: {form}, but this file holds {_kind(node)}")
        origins: dict[Path, str] = {}
        problems = list(_walk(node, (), origins, set()))
        if problems:
            raise ConfigError("\n  ".join([f"{name}:", *problems]))
        return Source(name, loader.construct_document(node), origins)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{name}: not valid YAML: {_describe(error)}") from None
    finally:
        loader.dispose()


def override(
    source: Source, assignments: Iterable[str], *, flag: str = "--set", section: Path = ()
) -> Source:
    """Return a copy of the source with `key.path=value` assignments applied in order; values are YAML.

    They are values of the command line's option `flag`, and their key paths start at `section`.

    Raises:
        ConfigError: If an assignment is not of that form, or a key on its path holds no mapping.
    """
    data = dict(source.data)
    origins = dict(source.origins)
    for assignment in assignments:
        origin = f"{flag} {assignment}"
        key, equals, text = assignment.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not equals or not all(parts):
            raise ConfigError(f"{origin}: write {flag} KEY=VALUE; a key inside a section is section.key")
        path = (*section, *parts)
        inner = data
        for depth, part in enumerate(path[:-1]):
            held = inner.get(part)
            if held is not None and not isinstance(held, dict):
                name = ".".join(path[: depth + 1])
                raise ConfigError(f"{origin}: {name} is {held!r}, which has no keys to set")
            # Copies along the path only: neither the original nor what an alias shares may change.
            inner[part] = inner = dict(held or {})
        inner[path[-1]] = parse_value(text, origin)
        origins = {p: o for p, o in origins.items() if p[: len(path)] != path}
        origins[path] = origin
    return Source(source.name, data, origins)


def parse_value(text: str, where: str) -> Any:
    """Return a YAML value typed on the command line; empty text is None.

    Raises:
        ConfigError: If it is not YAML.

    Example:
        >>> parse_value("1e-6", "--set params.tolerance")
        1e-06
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{where}: not a YAML value: {_describe(error)}") from None


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _walk(node: yaml.Node, path: Path, origins: dict[Path, str], seen: set[int]) -> Iterable[str]:
    """Record the line of every key, and yield a problem for each key that is written twice."""
    if id(node) in seen:  # an alias: its keys were recorded where it is anchored
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            origins[(*path, str(index))] = _line(item)
            yield from _walk(item, (*path, str(index)), origins, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    first: dict[str, str] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            yield f"{_line(key)}: a key must be a name, not {_kind(key)}"
            continue
        inner = (*path, key.value)
        if key.value in first:
            yield f"{_line(key)}, {'.'.join(inner)}: written twice; the first is in {first[key.value]}"
            continue
        first[key.value] = origins[inner] = _line(key)
        yield from _walk(value, inner, origins, seen)


def _kind(node: yaml.Node | None) -> str:
    if isinstance(node, yaml.ScalarNode):
        return "a single value"
    return "a list" if isinstance(node, yaml.SequenceNode) else "nothing" if node is None else "a mapping"


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _describe(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)
