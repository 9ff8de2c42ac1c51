"""Readers of graph texts in plain Python, line by line, to judge the real ones. They share no code with them.

Each returns a `Plain`, or raises `Wrong` where the text has no meaning. Where they are more lenient than the real
reader (in columns that are not read), the real one may refuse what they take.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import networkx

BLANKS = " \t\v\f"
COMMENTS = ("#", "%", "//")
Arc = tuple[Any, ...]


class Wrong(Exception):
    """The text has no meaning."""


@dataclass
class Plain:
    """A graph: its edges, an undirected one once, and vertices that need no edge."""

    edges: list[Arc] = field(default_factory=list)
    directed: bool = True
    named: list[Any] = field(default_factory=list)

    @property
    def arcs(self) -> Counter[Arc]:
        if self.directed:
            return Counter(self.edges)
        return Counter(self.edges) + Counter((v, u, *rest) for u, v, *rest in self.edges if u != v)

    @property
    def vertices(self) -> list[Any]:
        return sorted({*self.named, *(end for edge in self.edges for end in edge[:2])})


def lines_of(data: bytes) -> list[str]:
    if b"\0" in data:
        raise Wrong("zero byte")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="surrogateescape")
    lines, line, at = [], "", 0
    while at < len(text):
        if text[at] in "\r\n":
            at += text[at : at + 2] == "\r\n"
            lines.append(line)
            line = ""
        else:
            line += text[at]
        at += 1
    return [*lines, line] if line else lines


def rows_of(lines: list[str], comments: tuple[str, ...] = COMMENTS) -> Iterator[str]:
    for line in lines:
        text = line.strip(BLANKS)
        if text and not text.startswith(comments):
            yield line


def fields_of(line: str) -> list[str]:
    return [word for word in re.split(f"[{BLANKS}]", line) if word]


def marked_fields(line: str, mark: str) -> list[str]:
    """Return the fields between marks; a state machine over the letters."""
    found, now, state = [], "", "begin"
    for letter in [*line, mark]:
        if state == "quoted":
            state, now = ("after", now) if letter == '"' else (state, now + letter)
        elif letter == '"':
            if state == "inside":
                raise Wrong("stray quote")
            now += '"' if state == "after" else ""
            state = "quoted"
        elif letter == mark:
            found.append(now.strip(BLANKS))
            now, state = "", "begin"
        elif state == "after":
            raise Wrong("stray quote")
        else:
            now, state = now + letter, "inside"
    if state == "quoted":
        raise Wrong("open quote")
    return found


def whole(word: str, low: int = -(2**63), high: int = 2**63 - 1, *, hexadecimal: bool = False) -> int:
    if hexadecimal and re.fullmatch("0[xX][0-9a-fA-F]+", word):
        value = int(word, 16)
    elif re.fullmatch("-?[0-9]+", word) and len(word.lstrip("-0")) < 30:
        value = int(word.lstrip("-0") or "0") * (-1 if word[0] == "-" else 1)
    else:
        raise Wrong(word[:20])
    if not low <= value <= high:
        raise Wrong(word[:20])
    return value


def number(word: str) -> float:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", word):
        raise Wrong(word[:20])
    value = float(word)
    if not math.isfinite(value):
        raise Wrong(word[:20])
    return value


def weights_of(words: list[str]) -> list[Any]:
    """Return floats, or whole numbers if floats would round one of those in the texts."""
    values = [number(word) for word in words]
    if not any(map(is_rounded, words)):
        return values
    return [whole(word) for word in words]


def is_rounded(word: str) -> bool:
    return re.fullmatch("[+-]?[0-9]+", word) is not None and int(word.lstrip("+-0")[:400] or "0") != int(
        abs(number(word))
    )


def text(word: str) -> str:
    if not word or any("\ud800" <= letter <= "\udfff" for letter in word):
        raise Wrong(word[:20])
    return word


def at(fields: list[str], index: int) -> str:
    if index >= len(fields):
        raise Wrong("missing field")
    return fields[index]


def edge_list(
    data: bytes,
    *,
    mark: str = "",
    of: Callable[[str], Any] | None = None,
    weight: int | None = None,
    skip: int = 0,
) -> Plain:
    """`skip` rows are the header."""
    end = of or (lambda word: whole(word, hexadecimal=True))
    found = Plain()
    lines = list(rows_of(lines_of(data)))[skip:]
    rows = [marked_fields(line, mark) if mark else fields_of(line) for line in lines]
    weights = [] if weight is None else weights_of([at(row, weight) for row in rows])
    for i, row in enumerate(rows):
        found.edges.append((end(at(row, 0)), end(at(row, 1)), *weights[i : i + 1]))
    if not found.edges:
        raise Wrong("no rows")
    return found


def listed(vertices: bytes, edges: bytes) -> Plain:
    """Read an edge list beside a file of ids alone."""
    found = edge_list(edges)
    rows = [fields_of(line) for line in rows_of(lines_of(vertices))]
    is_header = len(rows) > 1 and not is_number(rows[0][0]) and is_number(rows[1][0])
    found.named = [whole(at(row, 0), hexadecimal=True) for row in (rows[1:] if is_header else rows)]
    if len(set(found.named)) < len(found.named) or not {*found.vertices} <= {*found.named}:
        raise Wrong("listed")
    return found


def is_number(word: str) -> bool:
    try:
        return bool(number(word)) or True
    except Wrong:
        return word.lstrip("+-").lower() in ("nan", "inf", "infinity")


def ldbc(vertices: bytes, edges: bytes) -> Plain:
    rows = [fields_of(line) for line in rows_of(lines_of(edges), ("#",))]
    if not rows and edges:
        raise Wrong("no rows")
    found = Plain(
        named=[
            whole(at(fields_of(line), 0), hexadecimal=True) for line in rows_of(lines_of(vertices), ("#",))
        ]
    )
    weights = weights_of([at(row, 2) for row in rows]) if rows and len(rows[0]) > 2 else []
    for i, row in enumerate(rows):
        ends = [whole(at(row, place), hexadecimal=True) for place in (0, 1)]
        found.edges.append((*ends, *weights[i : i + 1]))
    if not found.named or len(set(found.named)) < len(found.named) or not {*found.vertices} <= {*found.named}:
        raise Wrong("listed")
    return found


def gml(data: bytes) -> Plain:
    """Return what NetworkX reads, which is what the real reader uses: of it only its care with files is judged."""
    found: Any = networkx.parse_gml(lines_of(data), label="id")
    return Plain(list(found.edges()), found.is_directed(), list(found))


def adjacency(
    data: bytes,
    *,
    of: Callable[[str], Any] = whole,
    weighted: bool = False,
    directed: bool = True,
    marks: str = ",;:",
) -> Plain:
    found = Plain(directed=directed)
    num_rows = 0
    for line in rows_of(lines_of(data)):
        num_rows += 1
        fields = [word for word in re.split(f"[{re.escape(BLANKS + marks)}]", line) if word]
        if not weighted and marks == ",;:":
            gaps = re.findall(f"(?<=[^{BLANKS},;:])[{BLANKS},;:]+(?=[^{BLANKS},;:])", line)
            are_blank = [not gap.strip(BLANKS) for gap in gaps]
            if any(are_blank) and not all(are_blank[1:]):
                raise Wrong("mixed")
        step = 2 if weighted else 1
        if not fields:
            continue
        first, rest = fields[0], fields[1:]
        if len(rest) % step:
            raise Wrong("no weight")
        if weighted and any(map(is_rounded, fields)):
            raise Wrong("rounded")
        source = exact(first) if weighted else of(first)
        if not rest:
            found.named.append(source)
        for i in range(0, len(rest), step):
            end = exact(rest[i]) if weighted else of(rest[i])
            found.edges.append((source, end, *((number(rest[i + 1]),) if weighted else ())))
    if not num_rows:
        raise Wrong("no rows")
    return found if directed else once(found)


def exact(word: str) -> int:
    """Return an id among weights, which is read as a float."""
    value = number(word)
    if value != int(value) or abs(value) > 2**53:
        raise Wrong(word[:20])
    return int(value)


def once(found: Plain) -> Plain:
    """Return an undirected graph whose edges are listed at both ends, with each once."""
    listed = Counter(found.edges)
    if any(listed[(v, u, *rest)] != times for (u, v, *rest), times in listed.items()):
        raise Wrong("listed once")
    kept = [edge for edge in found.edges if edge[0] <= edge[1]]
    return Plain(kept, False, found.named)


def matrix(data: bytes) -> Plain:
    lines = lines_of(data)
    if (
        not lines
        or lines[0].lower().split()[:2] != ["%%matrixmarket", "matrix"]
        or len(lines[0].split()) != 5
    ):
        raise Wrong("banner")
    form, kind, symmetry = lines[0].lower().split()[2:]
    value = {
        "real": number,
        "double": number,
        "integer": partial(whole, hexadecimal=True),
        "pattern": None,
    }.get(kind, Wrong)
    if value is Wrong or form not in ("coordinate", "array") or symmetry not in SYMMETRIES:
        raise Wrong("banner")
    rows = [fields_of(line) for line in rows_of(lines[1:], ("%",))]
    if not rows or len(rows[0]) != (3 if form == "coordinate" else 2):
        raise Wrong("size")
    size = [whole(word, 0) for word in rows[0]]
    n, entries = size[0], rows[1:]
    if size[0] != size[1] or n > 10**6:
        raise Wrong("size")
    found = Plain(directed=symmetry != "symmetric", named=list(range(1, n + 1)))
    triples: list[Arc] = []
    if form == "coordinate":
        for words in entries:
            if len(words) != (2 if value is None else 3):
                raise Wrong("fields")
            ends = (whole(words[0], 1, n, hexadecimal=True), whole(words[1], 1, n, hexadecimal=True))
            triples.append((*ends, *(() if value is None else (value(words[2]),))))
        if len(triples) != size[2]:
            raise Wrong("count")
    else:
        if value is None or n > 1000:
            raise Wrong("array")
        first = {"general": lambda c: 1, "symmetric": lambda c: c, "skew-symmetric": lambda c: c + 1}[
            symmetry
        ]
        places = [(row, c) for c in range(1, n + 1) for row in range(first(c), n + 1)]
        if len(places) != len(entries) or any(len(words) != 1 for words in entries):
            raise Wrong("count")
        values = [value(words[0]) for words in entries]
        triples = [(*place, v) for place, v in zip(places, values, strict=True) if v != 0]
    if symmetry == "skew-symmetric":
        if value is None or any(i == j for i, j, _ in triples):
            raise Wrong("diagonal")
        triples += [(j, i, -v) for i, j, v in triples]
    found.edges = triples
    return found


SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def metis(data: bytes, *, directed: bool = False) -> Plain:
    lines = [line for line in lines_of(data) if not line.lstrip(BLANKS).startswith("%")]
    while lines and not lines[0].strip(BLANKS):
        lines.pop(0)
    header = fields_of(lines.pop(0)) if lines else []
    if not 2 <= len(header) <= 4:
        raise Wrong("header")
    code = header[2].zfill(3) if len(header) > 2 else "000"
    if len(code) != 3 or set(code) - {"0", "1"}:
        raise Wrong("code")
    n, m, num_weights = (whole(word, 0) for word in [*header[:2], *(header[3:] or ["1"])])
    skip = int(code[0]) + (num_weights if code[1] == "1" else 0)
    if n > 10**6 or any(line.strip(BLANKS) for line in lines[n:]):
        raise Wrong("lines")
    found = Plain(directed=directed, named=list(range(1, n + 1)))
    for vertex, line in enumerate(lines[:n], start=1):
        words = [whole(word) for word in fields_of(line)]
        if (words or skip) and len(words) < skip:
            raise Wrong("weights")
        rest, step = words[skip:], 1 + int(code[2])
        if len(rest) % step:
            raise Wrong("weights")
        for i in range(0, len(rest), step):
            if not 1 <= rest[i] <= n:
                raise Wrong("neighbour")
            found.edges.append((vertex, *rest[i : i + step]))
    listings = len(found.edges)
    if directed:
        if listings not in (m, 2 * m):
            raise Wrong("count")
        return found
    loops = sum(u == v for u, v, *_ in found.edges)
    if (listings - loops) // 2 + loops != m:
        raise Wrong("count")
    return once(found)


def dimacs(data: bytes) -> Plain:
    counts, kind, found = None, "", Plain()
    shape: tuple[str, int] | None = None
    weigh: Callable[[str], float] | None = None
    for line in lines_of(data):
        fields = fields_of(line)
        if not fields or line.lstrip(BLANKS).startswith(("c", "#", "%")):
            continue
        if fields[0] == "p" and counts is None and shape is None:
            if len(fields) != 4 or fields[1] not in ("sp", "edge", "col", "tw"):
                raise Wrong("problem")
            kind, counts = fields[1], (whole(fields[2], 0), whole(fields[3], 0))
            continue
        tag = fields[0] if fields[0] in ("a", "e") else ""
        shape = shape or (tag, len(fields))
        if (tag, len(fields)) != shape or len(fields) - len(tag) not in (2, 3):
            raise Wrong("row")
        bounds = (1, counts[0]) if counts else ()
        words = fields[len(tag) :]
        ends = tuple(whole(word, *bounds, hexadecimal=True) for word in words[:2])
        weigh = weigh or (partial(whole, hexadecimal=True) if re.fullmatch("-?[0-9]+", words[-1]) else number)
        found.edges.append((*ends, *map(weigh, words[2:])))
    if (counts is None and not found.edges) or (counts and counts[0] > 10**6):
        raise Wrong("nothing")
    found.directed = kind == "sp" if kind else shape is None or shape[0] != "e"
    if counts:
        found.named = list(range(1, counts[0] + 1))
        if len(found.edges) != counts[1]:
            raise Wrong("count")
    return found
