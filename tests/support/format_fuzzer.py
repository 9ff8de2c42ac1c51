"""Mutated graph files: each is read as a plain reader reads it, or refused by a GraphError of a screen at most.

By hand, with another seed and more of them:

    PYTHONPATH=tests/support python -m format_fuzzer text 20000 7
    PYTHONPATH=tests/support python -m format_fuzzer binary 2000 7
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import plain_readers as plain
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import zstandard
from graph_files import COMPRESSORS, arcs, vertices

from sigps.errors import GraphError
from sigps.graph.load import load

SCREEN = 24 * 80


@dataclass(frozen=True)
class Sample:
    """A file, how it is loaded, and the plain reader of it.

    Attributes:
        name: Its name.
        data: What it holds; this is mutated.
        read: The plain reader.
        options: Of `load`; `vertices` is a file's name.
        beside: Other files that belong to the graph, by name.
        loaded: The name of the file that `load` is given, if it is another one.
    """

    name: str
    data: bytes
    read: Callable[[bytes], plain.Plain]
    options: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, bytes] = field(default_factory=dict)
    loaded: str = ""


_SPACED = b"# a comment\n10 20 5\n20\t30\t2.5\n\n  30  10 -1e2 \n10 20 5\n7 7 .5\n"
_MARKED = b'source,target,w\n"10",20,5\n20, 30 ,2.5\n30,10,1\n# c\n10,40,0\n'
_NAMED = b'ann,bob,1\n"Doe, J",ann,2\nbob,"say ""x""",3\n ann ,"b",4\n'
_TABBED = "zoë\tnew york\nnew york\tann\n# c\nann\tzoë\n".encode()
_LISTED = b"1: 2, 3\n2 1 3\n# c\n\n3\n4:1\n"
_TWICE = b"1 2 3\n2 1\n3 1 3\n5\n"
_PAIRS = b"1 2,0.5 3,7\n2 1 .5\n8\n"
_MATRIX = b"%%MatrixMarket matrix coordinate real general\n% c\n4 4 3\n1 2 0.5\n2 1 -3\n4 4 1e1\n"
_HALF = b"%%MatrixMarket matrix coordinate integer symmetric\n4 4 3\n2 1 5\n3 3 6\n4 1 7\n"
_SKEW = b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 -6\n"
_PATTERN = b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 1\n3 3\n"
_ARRAY = b"%%MatrixMarket matrix array real symmetric\n3 3\n1\n0\n2.5\n0\n-1\n4\n"
_METIS = b"% c\n5 4\n2 3\n1 3\n1 2 4\n3\n\n"
_METIS_WEIGHTS = b"3 2 011 2\n7 8 2 5\n7 8 1 5 3 6\n7 8 2 6\n"
_METIS_ARCS = b"4 3\n2 3\n\n1\n\n"
_ROADS = b"c roads\np sp 5 3\na 1 2 10\na 2 1 10\nc x\na 4 5 7\n"
_COLOURS = b"p edge 4 2\ne 1 2\ne 3 1\n"
_VERTICES = b"1\n2\n# c\n3\n 9 \n"
_PAYMENTS = b"1 2 0.5\n3\t1\t2\n"
_GML = b"graph [\n directed 1\n node [ id 1 ]\n node [ id 4 ]\n edge [ source 4 target 1 ]\n]\n"
_FEW = b"1 2\n3 2\n"
_BARE = b"c no problem line\na 1 2 1\na 2 9 3\n"

TEXTS = [
    Sample(
        "a.txt",
        _SPACED,
        partial(plain.edge_list, weight=2),
        {"weights": 2, "delimiter": "whitespace", "header": False},
    ),
    Sample("b.txt", _SPACED, plain.edge_list, {"delimiter": "whitespace", "header": False}),
    Sample(
        "c.csv",
        _MARKED,
        partial(plain.edge_list, mark=",", weight=2, skip=1),
        {"weights": 2, "delimiter": ",", "header": True},
    ),
    Sample(
        "d.csv",
        _NAMED,
        partial(plain.edge_list, mark=",", of=plain.text),
        {"ids": "string", "delimiter": ",", "header": False},
    ),
    Sample(
        "e.tsv",
        _TABBED,
        partial(plain.edge_list, mark="\t", of=plain.text),
        {"ids": "string", "delimiter": "\t", "header": False},
    ),
    Sample(
        "f.txt",
        b"ann bob\nbob  eve\n",
        partial(plain.edge_list, of=plain.text),
        {"ids": "string", "delimiter": "whitespace", "header": False},
    ),
    Sample("a.adj", _LISTED, plain.adjacency),
    Sample("b.adj", _TWICE, partial(plain.adjacency, directed=False), {"directed": False}),
    Sample("c.adj", _PAIRS, partial(plain.adjacency, weighted=True), {"weights": True}),
    Sample(
        "d.adj", b"ann bob eve\nbob ann\ndan\n", partial(plain.adjacency, of=plain.text), {"ids": "string"}
    ),
    *(
        Sample(f"{i}.mtx", data, plain.matrix)
        for i, data in enumerate([_MATRIX, _HALF, _SKEW, _PATTERN, _ARRAY])
    ),
    Sample("a.graph", _METIS, plain.metis),
    Sample("b.graph", _METIS_WEIGHTS, plain.metis),
    Sample("c.graph", _METIS_ARCS, partial(plain.metis, directed=True), {"directed": True}),
    *(Sample(f"{i}.gr", data, plain.dimacs) for i, data in enumerate([_ROADS, _COLOURS, _BARE])),
    Sample(
        "g.v", _VERTICES, lambda data: plain.ldbc(data, _PAYMENTS), {"directed": True}, {"g.e": _PAYMENTS}
    ),
    Sample(
        "g.e", _PAYMENTS, lambda data: plain.ldbc(_VERTICES, data), {"directed": True}, {"g.v": _VERTICES}
    ),
    Sample("a.gml", _GML, plain.gml),
    Sample(
        "ids.csv",
        b"7\n# c\n1\n2\n\n3\n",
        lambda data: plain.listed(data, _FEW),
        {"vertices": "ids.csv", "delimiter": "whitespace", "header": False},
        {"few.txt": _FEW},
        "few.txt",
    ),
]
"""Texts, in formats that are named, and with options that leave nothing to infer."""

FORMATS = {
    ".txt": "snap",
    ".csv": "csv",
    ".tsv": "tsv",
    ".adj": "adjacency",
    ".mtx": "mtx",
    ".graph": "metis",
    ".gr": "dimacs",
    ".v": "ldbc",
    ".e": "ldbc",
    ".gml": "gml",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_WORDS = [
    *(
        "0",
        "-1",
        "007",
        "²",
        "٣",
        "0x10",
        "0xffffffffffffffff",
        "nan",
        "inf",
        "1e999",
        "+3",
        "1_0",
        "1.",
        "-",
        "9" * 30,
    ),
    *(str(10**12), str(10**20), "9" * 5000, "9223372036854775807", "-9223372036854775808", "4294967296"),
    *("9007199254740993", "-9007199254740993", "9007199254740992"),
    *('"', '""', '"x', 'x"', "#", "%", "//", "x" * 140_000, "\ufeff", "é", "\u00a0", "\u2028", "\x85"),
]
_BYTES = b" \t\r\n\v\f,;:|\"'#%/-+.0123456789eExXac\x00\x1c\x1f\xff\xc3\xa9"
_DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(),
}


def mutate_text(data: bytes, draw: random.Random) -> bytes:
    """Return a text with one to four changes: of letters, words, lines, line ends."""
    for _ in range(draw.choice([1, 1, 2, 4])):
        place = draw.randrange(len(data) + 1)
        lines = data.splitlines(keepends=True)
        match draw.randrange(9):
            case 0:
                data = data[:place] + bytes([draw.choice(_BYTES)]) + data[place:]
            case 1:
                data = data[:place] + data[place + draw.choice([1, 1, 3]) :]
            case 2:
                data = data[:place] + bytes([draw.choice(_BYTES)]) + data[place + 1 :]
            case 3 | 4:
                words = data.split(b" ") if b"," not in data else data.split(b",")
                words[draw.randrange(len(words))] = draw.choice(_WORDS).encode()
                data = (b" " if b"," not in data else b",").join(words)
            case 5 if lines:
                lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
                data = b"".join(lines)
            case 6 if lines:
                lines.pop(draw.randrange(len(lines)))
                data = b"".join(lines)
            case 7:
                data = data.replace(
                    b"\n", draw.choice([b"\r", b"\r\n", b"\n\n", b" \n"]), draw.choice([1, 2, -1])
                )
            case 8:
                data = draw.choice([data[:place], b"\xef\xbb\xbf" + data, data + data, data.rstrip()])
    return data


def judge(sample: Sample, data: bytes, file: Path) -> str:
    """Return "read" or "refused"; raise AssertionError for anything else."""
    file.write_bytes(data)
    for name, content in sample.beside.items():
        (file.parent / name).write_bytes(content)
    options = {**sample.options}
    if "vertices" in options:
        options["vertices"] = file.parent / options["vertices"]
    path = file.parent / (sample.loaded or file.name)
    block_bytes = 5 if len(data) % 3 == 0 else None
    limits = mock.patch(
        "sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": block_bytes}
    )
    small = mock.patch("sigps.graph.memory.machine_memory", return_value=8 * 10**6)
    graph, refusal = None, ""
    with limits, small:
        try:
            graph = load(path, format=FORMATS[path.suffixes[0]], **options)
        except GraphError as error:
            refusal = str(error)
    if graph is None:
        assert len(refusal) <= SCREEN, f"a message of {len(refusal)} letters"
        named = [name for name in (file.name, *sample.beside) if name in refusal]
        assert named, f"no file is named: {refusal}"
        return "refused"
    found = Counter(arcs(graph)), vertices(graph), graph.directed
    expected = sample.read(data)
    assert found == (expected.arcs, expected.vertices, expected.directed), (found, expected)
    return "read"


def fuzz_texts(count: int, seed: int, folder: Path) -> Counter[str]:
    """Return how many of `count` mutated texts were read and refused; raise AssertionError at the first wrong one."""
    draw, outcomes = random.Random(seed), Counter[str]()
    for _ in range(count):
        sample = draw.choice(TEXTS)
        data = mutate_text(sample.data, draw)
        outcomes[judged(sample, data, folder, draw)] += 1
    return outcomes


def judged(sample: Sample, data: bytes, folder: Path, draw: random.Random) -> str:
    folder = folder / sample.name.replace(".", "_")
    folder.mkdir(exist_ok=True)
    try:
        return judge(sample, data, folder / sample.name)
    except Exception as error:
        raise AssertionError(
            f"{sample.name} {sample.options}: {data[:400]!r}: {type(error).__name__}: {error}"
        ) from error


def _table(draw: random.Random) -> Any:
    rows = range(40)
    ends = [[draw.choice([str, int])(draw.randrange(30)) for _ in rows] for _ in range(2)]
    if len({type(end) for side in ends for end in side}) > 1:
        ends = [list(map(str, side)) for side in ends]
    return pyarrow.table({"source": ends[0], "target": ends[1], "w": [draw.random() for _ in rows]})


def binary(kind: str, table: Any) -> bytes:
    """Return the bytes of a table as a file."""
    sink = io.BytesIO()
    if kind == "parquet":
        pyarrow.parquet.write_table(table, sink, row_group_size=16)
    else:
        pyarrow.feather.write_feather(table, sink, compression=kind, chunksize=16)
    return sink.getvalue()


def read_table(kind: str, data: bytes) -> plain.Plain:
    """Return the edges by Arrow alone, from memory, through Python's objects."""
    source = pyarrow.BufferReader(data)
    if kind == "parquet":
        table = pyarrow.parquet.ParquetFile(source).read()
    else:
        table = pyarrow.ipc.open_file(source).read_all()
    table.validate(full=True)
    columns = [table.column(place).to_pylist() for place in (0, 1, "w")]
    return plain.Plain(list(zip(*columns, strict=True)))


def _read_compressed(read: Callable[[bytes], plain.Plain], kind: str, data: bytes) -> plain.Plain:
    return read(_DECOMPRESSORS[kind](data))


def fuzz_binaries(count: int, seed: int, folder: Path) -> Counter[str]:
    """As `fuzz_texts`, of Parquet, Arrow and compressed texts with changed, cut, or repeated bytes."""
    draw, outcomes = random.Random(seed), Counter[str]()
    for _ in range(count):
        kind = draw.choice(["parquet", "uncompressed", "lz4", "zstd", "text"])
        if kind == "text":
            sample, kind = draw.choice(TEXTS), draw.choice(list(_DECOMPRESSORS))
            data = COMPRESSORS[kind](sample.data)
            sample = replace(
                sample, name=sample.name + kind, read=partial(_read_compressed, sample.read, kind)
            )
        else:
            name = "g.parquet" if kind == "parquet" else "g.arrow"
            sample = Sample(name, b"", partial(read_table, kind), {"weights": "w"})
            data = binary(kind, _table(draw))
        outcomes[judged(sample, mutate_bytes(data, draw), folder, draw)] += 1
    return outcomes


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8])):
        place = draw.randrange(len(changed)) if changed else 0
        match draw.randrange(6):
            case 0 | 1 | 2 if changed:
                changed[place] ^= 1 << draw.randrange(8)
            case 3 if changed:
                changed[place] = draw.choice([0, 1, 127, 128, 255])
            case 4:
                del changed[place : place + draw.choice([1, 4, len(changed)])]
            case 5:
                changed[place:place] = changed[place : place + draw.choice([1, 8, 64])]
    return bytes(changed)


if __name__ == "__main__":
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        print((fuzz_texts if kind == "text" else fuzz_binaries)(count, seed, Path(name)))
