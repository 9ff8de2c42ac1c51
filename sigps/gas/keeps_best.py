"""The proof that only vertices that changed need to be gathered.

With `min` or `max` that holds where apply() does nothing unless the total is strictly better than a state, then stores
it there, and every message is that state, perhaps with one finite number added: what an in-edge brought before was
applied, or was no better, and brings nothing better now. compute() itself runs here, in the form that sends what
changed, on opaque values, as in `compiler/proofs`. NaN is never better. What the proof does not know it does not allow.
"""

from __future__ import annotations

import ast
import math
from typing import Any

from sigps.gas.writing import Translation
from sigps.model.fields import Field

__all__ = ["keeps_best"]


class _Opaque:
    """Any value: it may be copied, and added to a key."""

    def _refused(self, *other: object) -> bool:
        raise TypeError("an opaque value was used")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refused
    __hash__ = None  # type: ignore[assignment]


class _Key:
    """A key that compares with other keys; what is added to it leaves a sum, which does not."""

    def __init__(self, order: int) -> None:
        self.order = order

    def _of(self, other: object) -> int:
        if not isinstance(other, _Key):
            raise TypeError("compared with a constant")
        return other.order

    def __eq__(self, other: object) -> bool:
        return self.order == self._of(other)

    def __lt__(self, other: object) -> bool:
        return self.order < self._of(other)

    def __gt__(self, other: object) -> bool:
        return self.order > self._of(other)

    def __le__(self, other: object) -> bool:
        return self.order <= self._of(other)

    def __ge__(self, other: object) -> bool:
        return self.order >= self._of(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: object) -> _Sum:
        if not isinstance(other, (_Opaque, int, float)):
            raise TypeError("added to another key")
        return _Sum(self)

    __radd__ = __add__


class _Sum(_Opaque):
    def __init__(self, key: _Key) -> None:
        self.key = key


class _Edge:
    def __getattr__(self, name: str) -> Any:
        return _Opaque()


class _Vertex:
    """One vertex in a superstep: what it is asked for, and what it sends."""

    def __init__(self, superstep: int, values: dict[str, Any]) -> None:
        self.__dict__ |= {"superstep": superstep, "num_changed": 0, **values}
        self.sent: list[Any] = []
        self.out_edges = [_Edge()]

    def send(self, edge: _Edge, message: Any) -> None:
        self.sent.append(message)

    def vote_to_halt(self) -> None:
        """Nothing: every vertex halts."""


def keeps_best(tree: ast.FunctionDef, parts: Translation, fields: tuple[Field, ...], merge: Any) -> bool:
    """Return whether a class need only gather what changed.

    Args:
        tree: compute() in the form that sends where a vertex changed.
        parts: What it was made of.
        fields: The states.
        merge: The class's `merge`.
    """
    if merge not in ("min", "max") or parts.stored or not _is_plain(parts):
        return False
    names: dict[str, Any] = {**parts.bound, "__builtins__": {"min": min, "max": max}}
    message = parts.message
    if hasattr(message, "_fields"):
        names[message.__name__] = message
    exec(compile(ast.Module([tree], []), "proof", "exec"), names)
    return any(_takes_better(names["compute"], parts, fields, field, merge) for field in fields)


def _is_plain(parts: Translation) -> bool:
    """Return whether apply() runs without loops, and alike in all supersteps; and start() tells all, or the worst."""
    nodes = [n for s in parts.apply for n in ast.walk(s)]
    if any(isinstance(n, (ast.For, ast.While)) for n in nodes):
        return False
    return not any(isinstance(n, ast.Attribute) and n.attr == "superstep" for n in nodes)


def _takes_better(
    compute: Any, parts: Translation, fields: tuple[Field, ...], key: Field, merge: str
) -> bool:
    starts = [s.value for s in parts.start if isinstance(s, ast.Assign)]
    tells_all = all(isinstance(v, ast.Constant) and v.value is True for v in starts[-1:])
    worst = math.inf if merge == "min" else -math.inf
    if not tells_all and key.default != worst:
        return False
    try:
        for order in range(3):
            current, total = _Key(1), _Key(order)
            kept = {f.name: _Opaque() for f in fields} | {key.name: current}
            vertex = _Vertex(1, {**kept, "id": _Opaque()})
            compute(vertex, [_as_message(parts.message, total)])
            is_better = order < 1 if merge == "min" else order > 1
            after = vertex.__dict__
            if not is_better:
                if vertex.sent or any(after[name] is not value for name, value in kept.items()):
                    return False
            elif (
                after[key.name] is not total
                or not all(_is_key(m, total) for m in vertex.sent)
                or not vertex.sent
            ):
                return False
    except Exception:  # an opaque value was used for more than it supports
        return False
    return True


def _as_message(type_: Any, key: _Key) -> Any:
    return type_(key, *[_Opaque()] * (len(type_._fields) - 1)) if hasattr(type_, "_fields") else key


def _is_key(message: Any, total: _Key) -> bool:
    first = message[0] if isinstance(message, tuple) else message
    return first is total or (isinstance(first, _Sum) and first.key is total)
