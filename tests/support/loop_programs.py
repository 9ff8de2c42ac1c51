"""Programs that loop over messages as people write them: which combine on the way, and which need all messages."""

from __future__ import annotations

from cells import program_of

from sigps import Vertex

__all__ = ["FOLDS", "LISTS", "loop_program"]

_BEFORE = """
from typing import NamedTuple

class Offer(NamedTuple):
    price: float
    seller: int
    kind: int
"""

_FIELDS = """
best: State[float] = 100.0
who: State[int] = -1
count: State[int] = 0
mask: State[int] = 0
kind: Param[int] = 1
"""

_SEND = """
if self.superstep < 3:
    for edge in self.out_edges:
        self.send(edge, Offer(edge.weight + self.superstep, self.id, (self.id * 7 + self.superstep) % 3))
self.vote_to_halt()
"""

FOLDS = {
    "best and its sender": """
        for m in messages:
            if m.price < self.best:
                self.best = m.price
                self.who = m.seller
        """,
    "best and its sender, in locals": """
        best, who = 1e9, -1
        for m in messages:
            if best > m.price:
                best, who = m.price, m.seller
        self.x, self.who = best, who
        """,
    "greatest and its sender": """
        best = -1.0
        who = -1
        for price, seller, kind in messages:
            if price > best:
                best = price
                who = seller
        self.x, self.who = best, who
        """,
    "best of a kind": """
        for m in messages:
            if m.kind == self.kind and m.price < self.best:
                self.best = m.price
                self.who = m.seller
        """,
    "best of a kind, no worse": """
        for m in messages:
            if m.kind == self.kind:
                if m.price <= self.best:
                    self.best = m.price
                    self.who = m.seller
        """,
    "best of what is computed": """
        best = 1e9
        for m in messages:
            price = m.price + 2 * m.kind
            if price < best:
                best = price
                self.who = m.seller
        self.x = best
        """,
    "best pair": """
        best, who = 1e9, 10**9
        for m in messages:
            if (m.price, m.seller) < (best, who):
                best, who = m.price, m.seller
        self.x, self.who = best, who
        """,
    "several": """
        low, high, total, n = 1e9, -1e9, 0.0, 0
        for m in messages:
            low = min(low, m.price)
            if m.price > high:
                high = m.price
            total += m.price
            n += 1
        self.x = low + high + total / max(n, 1)
        self.count = n
        """,
    "branches": """
        for m in messages:
            if m.kind == 0:
                self.x += m.price
            elif m.kind == 1:
                self.count += 1
            else:
                self.mask += m.seller
        """,
    "continue": """
        for m in messages:
            if m.kind == 0:
                continue
            self.count += 1
            if m.price < 2.0:
                continue
            self.x += m.price
        """,
    "a hit": """
        found = False
        for m in messages:
            if m.kind == 2:
                found = True
                break
        self.count += 1 if found else 0
        """,
    "a hit, and its fields": """
        for m in messages:
            if m.kind >= 1:
                self.x = m.price
                self.who = m.seller
                break
        """,
    "a hit that ends compute()": """
        if self.superstep == 0:
            self.send_to_neighbors(Offer(self.id / 2, self.id, self.id % 3))
        self.vote_to_halt()
        for m in messages:
            if m.kind == 2:
                self.count += m.seller
                return
        self.x = 1.0
        """,
    "any one": """
        for m in messages:
            self.who = m.seller
            self.x = m.price
            break
        """,
    "any one of a kind": """
        for m in messages:
            if m.kind != 1:
                continue
            self.who = m.seller + 1
            break
        """,
    "no hit": """
        for m in messages:
            if m.kind == 0:
                break
        else:
            self.count += 1
        """,
    "said once or often": """
        found = False
        for m in messages:
            if m.kind == 2:
                found = True
        self.count += found
        """,
    "bits": """
        seen, common, parity = 0, -1, 0
        for m in messages:
            seen |= 1 << m.kind
            common &= m.seller
            parity ^= m.seller
        self.mask, self.count, self.who = seen, common, parity
        """,
    "bits of a kind": """
        for m in messages:
            if m.price > 1.0:
                self.mask &= m.seller
                self.count |= m.kind
        """,
    "product": """
        product, whole = 1.0, 1
        for m in messages:
            product *= m.price
            if m.kind > 0:
                whole *= m.kind + 1
        self.x, self.count = product, whole
        """,
    "tuples": """
        self.x, self.who = min(((m.price, m.seller) for m in messages), default=(0.0, -1))
        """,
    "tuples of a kind": """
        best = max(((m.kind, m.seller) for m in messages if m.price > 1.5), default=(-1, -1))
        self.count, self.who = best
        """,
    "tuple that grows": """
        best, who = 1e9, 10**9
        for m in messages:
            best, who = min((best, who), (m.price, m.seller))
        self.x, self.who = best, who
        """,
    "expression of a kind": """
        self.x = min((m.price + m.kind for m in messages if m.kind != 1), default=-1.0)
        """,
    "the vertex's own condition": """
        for m in messages:
            if self.superstep < 2 + self.id % 2 and m.price > 1.0:
                self.x += m.price
        """,
    "differences": """
        for m in messages:
            self.x -= m.price
            self.count = self.count - m.kind
        """,
    "chosen": """
        best = 50.0
        for m in messages:
            best = m.price if m.price < best else best
        self.x = best
        """,
    "nested": """
        for price, seller, kind in messages:
            if price > 1.0:
                if kind > 0:
                    self.x += price
                self.count += 1
        """,
}
"""Loops that fold: compute()'s body, but for sending."""

LISTS = {
    "compared with the vertex": """
        for m in messages:
            if m.price > self.x:
                self.count += 1
        self.x += 1.0
        """,
    "the last one": """
        for m in messages:
            self.x = m.price
        """,
    "carried": """
        before, n = 0.0, 0
        for m in messages:
            if before > 1.0:
                n += 1
            before = m.price
        self.count = n
        """,
    "carried truth": """
        ok = False
        for m in messages:
            if ok:
                self.count += 1
            ok = m.kind == 1
        """,
    "two ways": """
        for m in messages:
            self.x = min(self.x, m.price)
            self.x += m.price
        """,
    "until enough": """
        total = 0.0
        for m in messages:
            total += m.price
            if total > 3.0:
                break
        self.x = total
        """,
    "how often it got better": """
        for m in messages:
            if m.price < self.best:
                self.best = m.price
                self.count += 1
        """,
    "until a hit": """
        for m in messages:
            self.count += 1
            if m.kind == 2:
                break
        """,
    "a bound that moves": """
        bound = 9.0
        for m in messages:
            if m.price < bound:
                self.count += 1
            bound = min(bound, m.price)
        """,
}
"""Loops in which the order of messages matters, or what a vertex knows."""


def loop_program(name: str) -> Vertex:
    """Return a program that reads its messages by one of `FOLDS` or `LISTS`."""
    body = {**FOLDS, **LISTS}[name]
    indented = body.replace("\n        ", "\n").strip()
    send = "" if "send" in body else _SEND
    return program_of(indented + send, _FIELDS, message="message=Offer", before=_BEFORE)
