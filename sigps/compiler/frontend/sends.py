"""How compute() sends: by an outbox record and an edge function, or by direct messages.

Where a run of compute() sends at most one message along each out-edge, in one loop that does nothing else,
the values that the loop captures become the outbox record and the loop's body becomes the edge function:

    for edge in self.out_edges:                  record = (best,)
        self.send(edge, best + edge.weight)      edge(record, weight) = record[0] + weight

Any other program (two messages on one edge, `send_to`, loops with other effects) sends direct messages.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from sigps.compiler.frontend.edge_function import Sends, as_record, no_message
from sigps.compiler.frontend.grammar import SENDS, action_of, is_edge_loop
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import assigned_names, is_self, loaded_names
from sigps.compiler.program import Delivery
from sigps.native.source import as_written, reject
from sigps.native.trees import walk

__all__ = ["separate_sends"]


def separate_sends(body: list[ast.stmt], subject: Subject) -> Sends:
    """Derive how a program sends. Sends of direct messages stay in the body, for `rewrite_edge_loops`."""
    finder = _Sites(subject, body)
    finder.visit_block(body)
    if not finder.any_send:
        return Sends(Delivery.NONE, body, edge_body=[no_message(subject)])
    if not subject.message:
        reject(
            finder.first,
            f"{subject.name} sends messages, but declares none: class {subject.name}(Vertex, message=float)",
        )
    obstacle = finder.obstacle
    if not obstacle and max(_most_sends(body, finder.sites)) > 1:
        obstacle = "one run of compute() may send twice along an edge"
    if obstacle:
        return Sends(Delivery.DIRECT, body, obstacle=obstacle)
    return as_record(body, finder.sites, subject)


class _Sites:
    """Finds the statements that send, and whether each can be an edge function."""

    def __init__(self, subject: Subject, body: list[ast.stmt]) -> None:
        self._subject = subject
        self._body = body
        self.sites: list[ast.stmt] = []
        self.any_send = False
        self.first: ast.AST = ast.Pass()
        self.obstacle = ""

    def visit_block(self, block: Sequence[ast.stmt]) -> None:
        for statement in block:
            self._visit(statement)

    def _visit(self, statement: ast.stmt) -> None:
        action = action_of(statement)
        if action in SENDS:
            self._found(statement)
            if action == "send_to_neighbors":
                self.sites.append(statement)
            elif action == "send_to":
                self._stop(statement, "send_to() can reach any vertex")
            else:
                self._stop(statement, "send() stands outside a loop over self.out_edges of its own")
            return
        if is_edge_loop(statement) and any(action_of(n) in SENDS for n in walk(statement)):
            self._found(statement)
            assert isinstance(statement, ast.For)
            reason = self._impurity(statement)
            if reason:
                self._stop(statement, reason)
            else:
                self.sites.append(statement)
            return
        for block in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
            if isinstance(block, list):
                self.visit_block(block)

    def _found(self, statement: ast.stmt) -> None:
        if not self.any_send:
            self.first = statement
        self.any_send = True

    def _stop(self, node: ast.AST, reason: str) -> None:
        self.obstacle = self.obstacle or f"line {getattr(node, 'lineno', '?')}: {as_written(reason)}"

    def _impurity(self, loop: ast.For) -> str:
        """Return why a loop over the edges is not an edge function; empty if it is one."""
        edge = loop.target.id  # type: ignore[attr-defined]
        sends = [n for n in walk(loop) if action_of(n) is not None]
        if len(sends) != 1 or action_of(sends[0]) != "send":
            return "the loop over the edges does more than one send"
        call = sends[0].value  # type: ignore[attr-defined]
        if not (isinstance(call.args[0], ast.Name) and call.args[0].id == edge):
            return "send() takes an edge that is not the loop's"
        for node in walk(loop):
            is_inner = isinstance(node, (ast.For, ast.While, ast.GeneratorExp)) and node is not loop
            if is_inner or isinstance(node, (ast.Return, ast.Break)):
                return "the loop over the edges holds another loop, a break or a return"
            if isinstance(node, ast.Name) and node.id == "messages":
                return "the loop over the edges reads messages"
            if is_self(node) and not isinstance(node.ctx, ast.Load):
                return f"the loop over the edges changes self.{node.attr}"
            if (
                isinstance(node, ast.Attribute)
                and node.attr in self._subject.edge_states
                and not is_self(node)
            ):
                return f"the loop over the edges reads or changes {node.attr!r}, which is kept on them"
            if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets):
                return "the loop over the edges assigns more than plain names"
        changed = assigned_names(loop.body)
        outside = _names_outside(self._body, loop)
        if changed & outside:
            return (
                f"the loop over the edges changes {sorted(changed & outside)[0]!r}, which is used outside it"
            )
        carried = _carried(loop.body, changed)
        if carried:
            return f"an iteration may read {carried!r} from the one before"
        for node in walk(loop):
            if isinstance(node, ast.Call) and is_self(node.func) and self._subject.method(node.func.attr):
                name = node.func.attr
                touches_edge = bool((changed | {edge}) & loaded_names(node.args))
                if touches_edge and not self._subject.is_uniform(name):
                    return f"self.{name}() reads both the vertex and the edge"
        return ""


def _carried(block: Sequence[ast.stmt], names: set[str]) -> str | None:
    """Return a name that a block may read before the block assigns it, or None."""
    unassigned = set(names)

    def first_read(statement: ast.stmt, missing: set[str]) -> tuple[set[str], set[str] | None]:
        """Return the names read before assignment, and those unassigned after; None where control does not go on."""
        if isinstance(statement, ast.Continue):
            return set(), None
        if isinstance(statement, ast.If):
            early = loaded_names([statement.test]) & missing
            ends: list[set[str]] = []
            for branch in (statement.body, statement.orelse):
                found, end = reads(branch, missing)
                early |= found
                ends += [] if end is None else [end]
            return early, set.union(*ends) if ends else None
        early = loaded_names([statement]) & missing
        if isinstance(statement, ast.AugAssign):
            early |= assigned_names([statement]) & missing
        return early, missing - assigned_names([statement])

    def reads(statements_: Sequence[ast.stmt], missing: set[str]) -> tuple[set[str], set[str] | None]:
        early: set[str] = set()
        for statement in statements_:
            found, left = first_read(statement, missing)
            early |= found
            if left is None:
                return early, None
            missing = left
        return early, missing

    return min(reads(block, unassigned)[0], default=None)


def _most_sends(block: Sequence[ast.stmt], sites: list[ast.stmt]) -> tuple[int, int]:
    """Return the most sends on a path that falls through a block, and on one that returns inside it."""
    through, returned = 0, 0
    for statement in block:
        if statement in sites:
            through += 1
        elif isinstance(statement, ast.Return):
            return -1, max(returned, through)
        elif isinstance(statement, ast.If):
            yes, yes_returned = _most_sends(statement.body, sites)
            no, no_returned = _most_sends(statement.orelse, sites)
            returned = max(returned, through + yes_returned, through + no_returned)
            if max(yes, no) < 0:
                return -1, returned
            through += max(yes, no)
        elif isinstance(statement, (ast.For, ast.While)):
            inside = max(_most_sends(statement.body, sites))
            through += 2 if inside > 0 else 0
    return through, returned


def _names_outside(body: Sequence[ast.stmt], loop: ast.For) -> set[str]:
    inside = {id(n) for n in walk(loop)}
    return {n.id for s in body for n in walk(s) if isinstance(n, ast.Name) and id(n) not in inside}
